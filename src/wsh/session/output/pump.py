"""Who is served when many sessions print at once.

The keeper rings one doorbell for all rings. A turn of the pump serves rings with little first, then the others in the order in which
they came, and stops when its time is up, so that eight floods cannot make a keystroke wait; what is left goes on after the loop has looked at
everything else. Where several wait, a turn is short: one of them may be a keystroke's echo, and after such small output the loop has some rounds for what it woke. How many bytes a source gets at once follows what its bytes cost: nine of them can ask the terminal to
print 65,535 characters.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Protocol

log = logging.getLogger(__name__)

TURN_S = 0.0015
SLICE_BYTES = 64 * 1024
FIRST_SLICE_BYTES = 8 * 1024
LEAST_SLICE_BYTES = 256
LATER = -1
"""Instead of a number of bytes: nothing was parsed, since that has a moment's time."""
LATER_S = 0.001
CROWDED_SHARE = 1 / 8
"""Of a turn's time, where more than one source waits."""
QUICK_BYTES = 1024
"""Output as small as a key's echo."""
YIELDED_ROUNDS = 8
"""Of the loop, between quick output and the next slice of a flood: what the quick output wakes takes several rounds to answer, as tasks do,
and would wait for a flood in each of them."""


class OutputSource(Protocol):
    """Something with output waiting."""

    def backlog(self) -> int:
        """Bytes that wait to be parsed."""

    def pump(self, limit: int) -> int:
        """Parse at most `limit` bytes and say how many, or LATER. Never blocks."""


class OutputPump:
    def __init__(self, loop: asyncio.AbstractEventLoop, turn_s: float = TURN_S, slice_bytes: int = SLICE_BYTES) -> None:
        self._loop = loop
        self._turn_s = turn_s
        self._slice = slice_bytes
        self._slices: dict[OutputSource, int] = {}
        self._waiting: dict[OutputSource, None] = {}
        self._scheduled = False
        self._closed = False
        self._yielding = 0
        """Rounds of the loop that are still left to others."""
        self._was_quick = False
        """Whether the last slice was one of quick output."""
        self._may_yield = True
        """Whether a flood was served since the last time; else quick output without end would starve it."""
        self._began_cpu_s = 0.0
        """The processor time at which the slice that is being served began."""

    def wake(self, sources: Iterable[OutputSource]) -> None:
        """Call when `sources` have output. Quick backlogs are served before this returns, which saves a round of the loop."""
        for source in sources:
            self._waiting[source] = None
        if self._waiting and not self._scheduled and not self._closed:
            self._turn()

    def forget(self, source: OutputSource) -> None:
        self._waiting.pop(source, None)
        self._slices.pop(source, None)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._slices.clear()

    def _turn(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        if self._yielding:
            self._yielding -= 1
            self._scheduled = True
            self._loop.call_soon(self._turn)
            return
        turn_s = self._turn_s if len(self._waiting) == 1 else self._turn_s * CROWDED_SHARE
        end = time.perf_counter() + turn_s
        self._began_cpu_s = time.thread_time()
        # Round after round until the time is up: a round of the loop in between costs as much as a cheap slice.
        while self._waiting and self._serve(end):
            pass
        if self._waiting:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _serve(self, end: float) -> bool:
        """Give every waiting source a slice, those with little first. True if time is left."""
        waiting = list(self._waiting)
        if len(waiting) > 1:
            # By its backlog alone, a flood that is served would be the smallest, and be served again before the others.
            waiting.sort(key=lambda source: min(source.backlog(), FIRST_SLICE_BYTES))
        for source in waiting:
            is_quick = source.backlog() <= QUICK_BYTES
            if self._was_quick and not is_quick and self._may_yield:
                self._yielding, self._may_yield = YIELDED_ROUNDS, False
                return False
            self._was_quick = is_quick
            self._may_yield |= not is_quick
            # Take it off first: output that comes while it is served puts it back.
            del self._waiting[source]
            slice_bytes = self._slices.get(source, min(FIRST_SLICE_BYTES, self._slice))
            started = time.perf_counter()
            try:
                taken = source.pump(slice_bytes)
                left = source.backlog()
            except Exception:
                log.exception("parsing the output of %r failed", source)
                continue
            if taken == LATER:
                # Whoever waits for what is shown already may need this processor.
                self._loop.call_later(LATER_S, self.wake, (source,))
            elif left:
                self._waiting[source] = None
            now = time.perf_counter()
            took_s = now - started
            if took_s > self._turn_s:
                # A moment without the processor says nothing about what bytes cost. Asked for only here: it is a system call.
                took_s = time.thread_time() - self._began_cpu_s
            self._began_cpu_s += took_s
            self._learn(source, slice_bytes, taken, took_s)
            if now >= end:
                return False
        return True

    def _learn(self, source: OutputSource, slice_bytes: int, taken: int, took_s: float) -> None:
        """More at once next time for a source whose bytes are cheap, less for one that overran the turn."""
        if took_s > self._turn_s:
            self._slices[source] = max(LEAST_SLICE_BYTES, int(slice_bytes * self._turn_s / took_s / 2))
        elif taken >= slice_bytes < self._slice and took_s < self._turn_s / 4:
            self._slices[source] = min(self._slice, slice_bytes * 2)
