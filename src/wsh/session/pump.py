"""Who is served when many sessions print at once.

The keeper rings one doorbell for all rings. A turn of the pump serves the rings with the smallest backlog first and stops when
its time is up, so that eight floods cannot make a keystroke wait; what is left goes on after the loop has looked at
everything else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Protocol

log = logging.getLogger(__name__)

TURN_S = 0.003
SLICE_BYTES = 64 * 1024


class Source(Protocol):
    """Something with output waiting."""

    def backlog(self) -> int:
        """Bytes that wait to be parsed."""

    def pump(self, limit: int) -> int:
        """Parse at most `limit` bytes and say how many. Never blocks."""


class Pump:
    def __init__(self, loop: asyncio.AbstractEventLoop, turn_s: float = TURN_S, slice_bytes: int = SLICE_BYTES) -> None:
        self._loop = loop
        self._turn_s = turn_s
        self._slice = slice_bytes
        self._waiting: dict[Source, None] = {}
        self._scheduled = False
        self._closed = False

    def wake(self, sources: Iterable[Source]) -> None:
        """These have output. Quick backlogs are served before this returns, which saves a round of the loop."""
        for source in sources:
            self._waiting[source] = None
        if self._waiting and not self._scheduled and not self._closed:
            self._turn()

    def forget(self, source: Source) -> None:
        self._waiting.pop(source, None)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()

    def _turn(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        end = time.perf_counter() + self._turn_s
        waiting = list(self._waiting)
        if len(waiting) > 1:
            waiting.sort(key=lambda source: source.backlog())
        for source in waiting:
            # Take it off first: output that comes while it is served puts it back.
            del self._waiting[source]
            try:
                source.pump(self._slice)
                left = source.backlog()
            except Exception:
                log.exception("parsing the output of %r failed", source)
                continue
            if left:
                self._waiting[source] = None
            if time.perf_counter() >= end:
                break
        if self._waiting:
            self._scheduled = True
            self._loop.call_soon(self._turn)
