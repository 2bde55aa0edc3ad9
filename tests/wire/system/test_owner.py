"""Whose process it is, decided on made-up trees of processes; the real ones are in tests/http/test_owner.py."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from wsh.wire.system.owner import MARK_BASE, Limit, find_peer_fault, own_limit, why_not_owner

FREE: Limit = (None, None)
KEEPER = "/usr/bin/python3 -I -S /x/wsh/process/keeper/main.py sock"


def process(
    proc: Path, pid: int, parent: int, rttime: str = "unlimited", command: str = "sh", locks: str = "unlimited"
) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    soft, _, hard = rttime.partition(":")
    (folder / "limits").write_text(
        "Limit                     Soft Limit           Hard Limit           Units\n"
        f"Max file locks            {locks}            {locks}            locks\n"
        f"Max realtime timeout      {soft}            {hard or soft}            us\n"
    )
    (folder / "cmdline").write_bytes(command.encode().replace(b" ", b"\0") + b"\0")
    (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} " + " ".join(str(n) for n in range(5, 60)))


def faults(proc: Path, pids: list[int], own: Limit = FREE) -> list[bool]:
    return [why_not_owner(pid, own, proc) is not None for pid in pids]


def test_whatever_descends_from_a_keeper_or_from_a_marked_process_is_not_the_owners(tmp_path: Path) -> None:
    process(tmp_path, 1, 0)
    process(tmp_path, 5, 1)
    process(tmp_path, 10, 1, str(MARK_BASE + 1))
    process(tmp_path, 11, 10)
    process(tmp_path, 12, 1, locks=str(MARK_BASE + 1))
    process(tmp_path, 20, 1, command=KEEPER)
    process(tmp_path, 21, 20)
    process(tmp_path, 22, 21)
    process(tmp_path, 30, 1, command="vim src/wsh/process/keeper/main.py")
    assert faults(tmp_path, [1, 5, 30]) == [False] * 3
    assert faults(tmp_path, [10, 11, 12, 20, 21, 22, 99]) == [True] * 7


@pytest.mark.parametrize(
    ("rttime", "own", "is_owner"),
    [
        ("unlimited", FREE, True),
        ("unlimited", (200_000, 200_000), True),
        ("200000", (200_000, 200_000), True),
        ("200000:unlimited", (200_000, None), True),
        ("200000", FREE, False),
        ("1000", (200_000, 200_000), False),
        ("1000:200000", (200_000, 200_000), False),
        (f"1000:{MARK_BASE + 7}", FREE, False),
        (f"unlimited:{MARK_BASE + 7}", FREE, False),
        (f"{MARK_BASE + 7}", (MARK_BASE + 7, MARK_BASE + 7), False),
    ],
)
def test_a_limit_is_compared_with_the_servers_own(tmp_path: Path, rttime: str, own: Limit, is_owner: bool) -> None:
    process(tmp_path, 1, 0)
    process(tmp_path, 5, 1, rttime)
    assert (why_not_owner(5, own, tmp_path) is None) == is_owner


def test_an_ancestor_that_is_hidden_ends_the_line_and_one_that_vanished_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(tmp_path, 5, 4)
    assert why_not_owner(5, FREE, tmp_path) is None, "as with hidepid: its parent is another user's"

    process(tmp_path, 6, 5)
    process(tmp_path, 20, 1, command=KEEPER)
    reads = 0

    def open_file(path: str, mode: str) -> IO[bytes]:
        nonlocal reads
        if path == str(tmp_path / "5" / "stat"):
            reads += 1
            if reads == 1:  # it ends just now, and the keeper adopts its child
                (tmp_path / "6" / "stat").write_text(f"6 (x) S 20 {' '.join(str(n) for n in range(5, 60))}")
                raise FileNotFoundError
        return open(path, "rb")

    monkeypatch.setattr("wsh.wire.system.owner.open", open_file, raising=False)
    assert why_not_owner(6, FREE, tmp_path) == "was started by wsh"


def test_a_line_of_ancestors_without_end_is_not_the_owners(tmp_path: Path) -> None:
    for pid in range(2, 400):
        process(tmp_path, pid, pid - 1)
    assert "more than" in str(why_not_owner(399, FREE, tmp_path))


def test_a_peer_that_ended_is_not_the_owner_whoever_has_its_number_now() -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("")
    listener.listen()
    name = listener.getsockname()
    with listener, socket.socket(socket.AF_UNIX) as ours:
        ours.connect(name)
        accepted, _ = listener.accept()
        with accepted:
            assert find_peer_fault(accepted, own_limit()) == why_not_owner(os.getpid(), own_limit())
        program = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({name!r})"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        accepted, _ = listener.accept()
        with accepted:
            assert find_peer_fault(accepted, own_limit()) == "has ended"
