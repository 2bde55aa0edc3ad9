"""Finding what killed the engine, in children, so that it can be left out and everything else kept.

The examiner is a child that has the session's terminal as it was before the trouble. It lets a copy of itself parse all
that followed; if the copy dies, it finds by halving the shortest beginning that kills, goes back to where the last
sequence or character in it began, leaves that out, and goes on behind it.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from wsh.session.recovery.gap import MARGINS_OFF, Gaps
from wsh.session.recovery.trial import attempt
from wsh.terminal import Terminal
from wsh.wire.error import WshError

PIECE_BYTES = 8 * 1024
BUDGET_S = 1.0
"""For the search. What is not found by then is left out in one piece."""
_HALVING_S = 5.0
"""For one halving, which takes a dozen tries: only output that takes seconds to parse needs so long."""
_MOST_ROUNDS = 64

Make: TypeAlias = Callable[[], Terminal]
Look: TypeAlias = Callable[[Terminal], None]


@dataclass(frozen=True)
class Fed:
    """Output to parse, at an offset."""

    at: int
    data: bytes


@dataclass(frozen=True)
class SizeChange:
    """A change of size at an offset."""

    at: int
    rows: int
    cols: int


Step: TypeAlias = Fed | SizeChange


@dataclass
class Findings:
    """What must be left out. `whole` says that the engine lives then; else only a new terminal is safe."""

    gaps: list[tuple[int, int]] = field(default_factory=list)
    whole: bool = False
    opened: bool = False
    """Whether the terminal could be made at all: a snapshot may be what kills."""


def look_everywhere(terminal: Terminal) -> None:
    """Everything that a server does with a terminal besides feeding it."""
    for look in (
        lambda: terminal.screen(True),
        lambda: terminal.scrollback(0, 1000),
        lambda: terminal.replay(1000),
        lambda: terminal.search("\0", limit=1),
        lambda: Terminal.restore(terminal.snapshot()).close(),
    ):
        try:
            look()
        except WshError:
            pass  # refused is not dead


def examine(
    make: Make, steps: Iterable[Step], look: Look, budget_s: float, limit_s: float, *, again: bool = False
) -> Findings:
    """Call in a child of its own. `limit_s` of processor time is a death too; `again` says that some was left out before."""
    return _Examiner(make, steps, look, budget_s, limit_s, again).run()


class _Examiner:
    def __init__(
        self, make: Make, steps: Iterable[Step], look: Look, budget_s: float, limit_s: float, again: bool
    ) -> None:
        self._again = again
        self._make = make
        self._all = list(steps)
        self._steps = [piece for step in self._all for piece in _pieces(step)]
        self._look = look
        self._until = time.monotonic() + budget_s
        self._limit_s = limit_s
        self._note = mmap.mmap(-1, 4096)
        self._at = memoryview(self._note).cast("q")
        self._found = Findings()

    def run(self) -> Findings:
        found = self._found
        if not attempt(lambda: self._make().close(), self._limit_s).lived:
            return found
        found.opened = True
        terminal = self._make()
        done = rounds = 0
        while True:
            if self._survives(partial(self._rest, terminal, done)):
                found.whole = True
                return found
            index = self._at[0]
            rounds += 1
            if rounds > _MOST_ROUNDS or time.monotonic() >= self._until:
                return found
            if index >= len(self._steps):
                index = self._find_step(terminal, done)
                if index < 0:
                    if done == 0:
                        return found  # it dies of looks alone
                    # What looking dies of came before the last gap: from the beginning, without what is known by now.
                    terminal, done = self._make(), 0
                    kept = without(self._all, Gaps(found.gaps))
                    self._steps = [piece for step in kept for piece in _pieces(step)]
                    continue
                for step in self._steps[done:index]:
                    _do(terminal, step)
                self._leave_out(terminal, index, self._look)
            else:
                for step in self._steps[done:index]:
                    _do(terminal, step)
                self._leave_out(terminal, index, None)
            done = index + 1

    def _survives(self, work: Callable[[], None]) -> bool:
        return attempt(work, self._limit_s).lived

    def _rest(self, terminal: Terminal, done: int) -> None:
        for index in range(done, len(self._steps)):
            self._at[0] = index
            _do(terminal, self._steps[index])
        self._at[0] = len(self._steps)
        self._look(terminal)

    def _find_step(self, terminal: Terminal, done: int) -> int:
        """The step after which looking kills and before which it does not; -1 if it always does."""

        def lives(count: int) -> bool:
            def work() -> None:
                for step in self._steps[done : done + count]:
                    _do(terminal, step)
                self._look(terminal)

            return self._survives(work)

        if not lives(0):
            return -1
        return done + _halve(lives, len(self._steps) - done)[0]

    def _leave_out(self, terminal: Terminal, index: int, look: Look | None) -> None:
        """Step `index` kills a terminal that stands before it. Leave out what does, and finish the rest of the step."""
        step = self._steps[index]
        if isinstance(step, SizeChange):
            self._found.gaps.append((step.at, step.at))
            return
        data = step.data
        lives, end = self._shortest(terminal, data, look)
        start = self._last_ground(terminal, data[:lives])
        if start:
            terminal.feed(data[:start])
        gaps = self._found.gaps
        if (gaps or self._again) and terminal.has_margins:
            # It dies of every scroll between its margins: leave out enough to have room for their end.
            end = max(end, min(len(data), start + len(MARGINS_OFF)))
        if gaps and gaps[-1][1] == step.at + start:
            # One after the other: a state in which everything kills is left sooner in longer strides.
            end = min(len(data), end + 2 * (gaps[-1][1] - gaps[-1][0]))
            gaps[-1] = (gaps[-1][0], step.at + end)
        else:
            gaps.append((step.at + start, step.at + end))
        if end - start >= len(MARGINS_OFF):
            terminal.feed(MARGINS_OFF)
        if end < len(data):
            self._steps.insert(index + 1, Fed(step.at + end, data[end:]))

    def _shortest(self, terminal: Terminal, data: bytes, look: Look | None) -> tuple[int, int]:
        """The longest beginning that it survives, and the shortest that kills: one byte apart, if there was time."""

        def lives(size: int) -> bool:
            def work() -> None:
                terminal.feed(data[:size])
                if look is not None:
                    look(terminal)

            return self._survives(work)

        return _halve(lives, len(data))

    def _last_ground(self, terminal: Terminal, data: bytes) -> int:
        """Where in `data`, or at its end, the last sequence or character that is not complete began."""

        def work() -> None:
            ground = 0
            for index in range(len(data)):
                terminal.feed(data[index : index + 1])
                if terminal.at_ground:
                    ground = index + 1
            self._at[1] = ground

        self._at[1] = 0
        return int(self._at[1]) if self._survives(work) else 0


def _pieces(step: Step) -> list[Step]:
    if isinstance(step, SizeChange):
        return [step]
    return [Fed(step.at + at, step.data[at : at + PIECE_BYTES]) for at in range(0, len(step.data), PIECE_BYTES)]


def _do(terminal: Terminal, step: Step) -> None:
    if isinstance(step, SizeChange):
        terminal.resize(step.rows, step.cols)
    else:
        terminal.feed(step.data)
        terminal.take_replies()
        terminal.take_events()


def without(steps: Iterable[Step], gaps: Gaps) -> Iterator[Step]:
    """Steps that skip what is known to kill."""
    for step in steps:
        if isinstance(step, Fed):
            yield Fed(step.at, gaps.blank(step.at, step.data))
        elif not gaps.skips_resize(step.at):
            yield step


def _halve(lives: Callable[[int], bool], size: int) -> tuple[int, int]:
    """The largest number up to `size` that lives, and the smallest that does not: one apart, if there was time."""
    low, high = 0, size
    until = time.monotonic() + _HALVING_S
    while high - low > 1 and time.monotonic() < until:
        middle = (low + high) // 2
        if lives(middle):
            low = middle
        else:
            high = middle
    return low, high
