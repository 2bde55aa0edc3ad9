"""Landlock rulesets made ahead: each is used once, and none that was made for another state of the system's folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.sandbox.held import require
from tests.support.waiting import wait_until
from wsh.sandbox import landlock, root
from wsh.sandbox.spare import SpareRulesets


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the system's with a secret in it, unchanged for a while."""
    require("landlock")
    folder = tmp_path / "etc"
    folder.mkdir()
    for name in ("shadow", "passwd"):
        (folder / name).write_text(name)
    monkeypatch.setattr(landlock, "SYSTEM", (str(folder),))
    monkeypatch.setattr(root, "SYSTEM_SECRETS", (str(folder / "shadow"), str(folder / "shadow-")))
    settle(tmp_path, folder)
    return folder


def settle(*folders: Path) -> None:
    for folder in folders:
        os.utime(folder, (1_000_000, 1_000_000))


def count_rulesets() -> int:
    """Those that this process has open; the number of a closed one may be that of the next."""
    links = (Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return sum("landlock" in os.readlink(link) for link in links if os.path.lexists(link))


def test_every_session_gets_one_of_its_own_and_the_next_is_made_ahead(etc: Path) -> None:
    spares, abi = SpareRulesets(), landlock.read_abi()
    taken = [spares.take(True, abi)]
    try:
        for _ in range(3):
            wait_until(lambda: True in spares._ready, "the next one")
            ahead = spares._ready[True].fd
            taken.append(spares.take(True, abi))
            assert taken[-1] == ahead
        assert len(set(taken)) == len(taken)
        other = spares.take(False, abi)
        taken.append(other)
        assert len(set(taken)) == len(taken), "one that leaves the network open is another"
    finally:
        for fd in taken:
            os.close(fd)
        spares.close()
    assert spares._ready == {}


@pytest.mark.parametrize("change", ["replaced", "made", "removed", "secret"])
def test_one_from_before_a_change_is_not_used(etc: Path, change: str) -> None:
    spares, abi = SpareRulesets(), landlock.read_abi()
    try:
        os.close(spares.take(True, abi))
        wait_until(lambda: True in spares._ready, "the next one")
        old = spares._ready[True]
        assert old.state.is_settled
        match change:
            case "replaced":
                (etc / "new").write_text("other")
                (etc / "new").rename(etc / "passwd")
            case "made":
                (etc / "group").write_text("x")
            case "removed":
                (etc / "passwd").unlink()
            case _:
                (etc / "shadow-").write_text("another secret")
        assert landlock.read_state() != old.state
        os.close(spares.take(True, abi))
        wait_until(lambda: True in spares._ready, "the next one")
        assert spares._ready[True] is not old and count_rulesets() == 1, "the old one is closed"
    finally:
        spares.close()


def test_one_that_was_made_within_a_moment_of_a_change_is_not_used(etc: Path) -> None:
    (etc / "group").write_text("x")
    assert not landlock.read_state().is_settled
    settle(etc)
    assert landlock.read_state().is_settled


def test_after_the_end_nothing_is_made_ahead(etc: Path) -> None:
    spares, abi = SpareRulesets(), landlock.read_abi()
    spares.close()
    os.close(spares.take(True, abi))
    assert spares._worker is None and spares._ready == {}
