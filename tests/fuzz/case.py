"""One case: a size and what happens to a terminal of that size, one step after the other. Stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from wsh.terminal import Terminal
from wsh.wire.error import SnapshotCorrupt, SnapshotNotPossible


@dataclass(frozen=True)
class Step:
    """`do` is feed, resize, or a name of `LOOKS`."""

    do: str
    data: bytes = b""
    rows: int = 0
    cols: int = 0


@dataclass(frozen=True)
class Case:
    rows: int
    cols: int
    steps: tuple[Step, ...]

    @property
    def size(self) -> int:
        return sum(len(step.data) for step in self.steps)

    def without(self, first: int, last: int) -> Case:
        return replace(self, steps=self.steps[:first] + self.steps[last:])

    def with_data(self, index: int, data: bytes) -> Case:
        steps = list(self.steps)
        steps[index] = replace(steps[index], data=data)
        return replace(self, steps=tuple(steps))

    def dump(self) -> str:
        steps = [
            {"do": step.do, "data": step.data.decode("latin-1")}
            if step.do == "feed"
            else {"do": step.do, "rows": step.rows, "cols": step.cols}
            if step.do == "resize"
            else {"do": step.do}
            for step in self.steps
        ]
        return json.dumps({"rows": self.rows, "cols": self.cols, "steps": steps}, indent=1) + "\n"


def load(path: Path) -> Case:
    stored = json.loads(path.read_text())
    steps = tuple(
        Step(s["do"], s.get("data", "").encode("latin-1"), s.get("rows", 0), s.get("cols", 0)) for s in stored["steps"]
    )
    return Case(stored["rows"], stored["cols"], steps)


def _restored(terminal: Terminal) -> Terminal:
    try:
        other = Terminal.restore(terminal.snapshot())
    except (SnapshotNotPossible, SnapshotCorrupt):
        return terminal
    terminal.close()
    return other


def _screen(terminal: Terminal) -> Terminal:
    terminal.screen(True)
    terminal.screen(False)
    return terminal


def _replay(terminal: Terminal) -> Terminal:
    try:
        terminal.replay(200)
    except SnapshotNotPossible:
        pass
    return terminal


def _search(terminal: Terminal) -> Terminal:
    terminal.search("a", limit=10)
    return terminal


def _scrollback(terminal: Terminal) -> Terminal:
    terminal.scrollback(0, 200, styled=True)
    terminal.scrollback(0, 200)
    return terminal


def _compress(terminal: Terminal) -> Terminal:
    terminal.compress()
    return terminal


LOOKS: dict[str, Callable[[Terminal], Terminal]] = {
    "screen": _screen,
    "restore": _restored,
    "replay": _replay,
    "search": _search,
    "scrollback": _scrollback,
    "compress": _compress,
}


def run(case: Case, note: Callable[[int], None] = lambda step: None) -> None:
    """Do it all; `note` hears each step before it is done."""
    terminal = Terminal(case.rows, case.cols)
    for number, step in enumerate(case.steps):
        note(number)
        if step.do == "feed":
            terminal.feed(step.data)
            terminal.take_replies()
            terminal.take_events()
        elif step.do == "resize":
            terminal.resize(step.rows, step.cols)
        else:
            terminal = LOOKS[step.do](terminal)
    note(len(case.steps))
    terminal.close()
