"""Real programs driven through a session, and their screens compared with what tmux shows of the same bytes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.session.running import run_with_registry
from tests.support.waiting import wait_until
from tests.terminal.test_peer import COLS, ROWS, Tmux, visible
from wsh.session.event import Actor
from wsh.session.record.journal import Journal
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.terminal import Line, TerminalScreen
from wsh.wire.system.place import Places

AGENT = Actor("agent", "driver")
WAIT_MS = 20_000

Step = tuple[str, str]
"""What is typed, and what must be seen afterwards (nothing: until it is quiet)."""

PROGRAMS: dict[str, tuple[str, list[Step]]] = {
    "vim": (
        "exec vim --clean -n -c 'syntax on' -c 'set number' demo.py",
        [("", "def f1"), ("10G", ""), ("ohello from vim\x1b", "hello from vim"), (":vsplit\r", ""), ("/f3(\r\x04\x04", "")],
    ),
    "vim, left again": ("vim --clean -n demo.py; echo left; exec cat", [("", "Top"), (":q!\r", "left"), ("after\r", "after")]),
    "less": ("exec less -R -N long.txt", [("", "line 5"), (" ", "line 40"), ("/line 17\r", "line 170"), ("kkkG", "END")]),
    "htop": ("exec htop -d 5", [("", "PID"), ("\x1b[B\x1b[B", ""), ("\x1b[15~", "")]),
    "nano": ("exec nano -I note.txt", [("", "GNU nano"), ("hello é日\r\tindented", "indented"), ("\x0f", "File Name")]),
    "python": (
        f"exec {sys.executable} -q",
        [("", ">>>"), ("for i in range(30): print(i, '\\x1b[1;31mred\\x1b[0m', '中' * (i % 5))\r\r", "29 "), ("1/0\r", "ZeroDivision")],
    ),
    "tmux in wsh": (
        "exec tmux -S ./inner -f inner.conf new-session -s inner",
        [("", "[inner]"), ("echo left\r", "left"), ("\x02%", ""), ("seq 40\r", "40")],
    ),
    "seq": ("seq 30000; exec cat", [("", "30000")]),
}  # fmt: skip


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    yield server
    server.close()


def prepare(work: Path) -> None:
    work.mkdir()
    (work / "demo.py").write_text("".join(f"def f{n}(x):  # {n}\n    return 'é日本' + x * {n}\n" for n in range(40)))
    (work / "long.txt").write_text("".join(f"line {n} \x1b[3{n % 8}mcolour\x1b[0m é中\n" for n in range(300)))
    (work / "inner.conf").write_text(
        "set -g status-right right\nset -g default-command 'sh'\nset -g status-interval 0\n"
    )


async def drive(session: Session, steps: list[Step]) -> None:
    for typed, seen in steps:
        before = session.generation if typed else 0
        if typed:
            await session.input.send(typed.encode(), AGENT)
        if seen:
            await session.wait(WaitSpec(text=seen, generation=before, max_wait_ms=WAIT_MS))
        await session.wait(WaitSpec(quiet_ms=150, max_wait_ms=WAIT_MS))


def printed(folder: Path, end: int) -> bytes:
    """Every byte up to `end`, once the keeper has put it on disk."""
    journal = Journal(folder)
    wait_until(lambda: journal.end >= end, f"{end} bytes in the journal", seen=lambda: journal.end)
    return journal.read_bytes(0, end)[0]


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_driven_through_a_session_looks_as_in_tmux(
    places: Places, tmp_path: Path, tmux: Tmux, name: str
) -> None:
    command, steps = PROGRAMS[name]
    work = tmp_path / "work"
    prepare(work)

    async def show(registry: SessionRegistry) -> tuple[TerminalScreen, TerminalScreen, list[Line], bytes]:
        session = await registry.open_session(SessionSpec(command=command, cwd=str(work), rows=ROWS, cols=COLS))
        await drive(session, steps)
        plain, styled, end = session.terminal.screen(False), session.terminal.screen(True), session.generation
        kept = session.terminal.scrollback(limit=20_000, styled=False).lines
        return plain, styled, kept, await asyncio.to_thread(printed, session.folder.path, end)

    plain, styled, kept, data = run_with_registry(places, show)
    subprocess.run(["tmux", "-S", str(work / "inner"), "kill-server"], check=False, capture_output=True)
    tmux.show(data)
    wait_until(lambda: tmux.capture() == plain.lines, f"tmux to show {plain.lines}", seen=tmux.capture)
    assert any(plain.lines)
    assert [visible(line) for line in styled.lines] == [visible(line) for line in tmux.capture_styled()]
    assert (plain.cursor.row, plain.cursor.col) == tmux.cursor()
    if name == "seq":
        theirs = [line for line in tmux.run("capture-pane", "-p", "-S", "-").split("\n") if line]
        ours = [line for line in kept if line]
        assert len(ours) > 9_000
        assert ours == theirs[-len(ours) :]
