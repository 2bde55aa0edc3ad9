"""Bytes in, lines out: in order, bounded, and without a turn of the loop where a line can be handled as soon as it is there.

A line is first offered to `at_once`, but only while a reader waits and nothing else does, so no line overtakes another. What is not taken
there is read by iterating. Knows neither where the bytes come from nor what the lines mean. Standard library only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

WAITING_BYTES = 1 << 16
"""So much may wait for the reader before `pause` is called."""
TURN_LINES = 32
"""So many lines are handed out in one turn of the loop, at once or to the reader: a burst of thousands leaves the others their turns."""


class LineFeed:
    """Lines without their ends; None stands for one of more than `most_bytes`, which has been skipped."""

    def __init__(self, *, pause: Callable[[], None], resume: Callable[[], None], most_bytes: int | None = None) -> None:
        self.at_once: Callable[[bytes], bool] = lambda line: False
        """Sees to a line within the call if it can, and says so. Must not raise."""
        self._pause = pause
        self._resume = resume
        self._paused = False
        self._most_bytes = most_bytes
        self._partial = bytearray()
        """The beginning of a line whose end has not come."""
        self._skipping = False
        self._waiting: deque[bytes | None] = deque()
        self._waiting_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        """Set while a reader waits for a line."""
        self._handed = 0
        """Lines that were handed out since the reader last waited."""
        self._ended = False
        self._problem: Exception | None = None

    def feed(self, data: bytes) -> None:
        if self._reader is not None:
            self._handed = 0  # a turn of its own
        if b"\n" not in data:
            self._keep(data)
            return
        *lines, rest = data.split(b"\n")
        if self._partial or self._skipping:
            lines[0] = bytes(self._partial) + lines[0]
            self._partial.clear()
        for line in lines:
            too_long = self._skipping or self._most_bytes is not None and len(line) > self._most_bytes
            self._skipping = False
            self._offer(None if too_long else line)
        if rest:
            self._keep(rest)

    def end(self, problem: Exception | None = None, *, whole: bool = True) -> None:
        """Nothing more comes. If not `whole`, what came last is a line though its end is missing. The reader is raised `problem`."""
        if self._ended:
            return
        self._ended, self._problem = True, problem
        if self._partial and not whole:
            self._waiting.append(bytes(self._partial))
        self._wake()

    def _keep(self, data: bytes) -> None:
        if self._skipping:
            return
        self._partial += data
        if self._most_bytes is not None and len(self._partial) > self._most_bytes:
            self._skipping = True
            self._partial = bytearray()

    def _offer(self, line: bytes | None) -> None:
        if self._reader is not None and line is not None and self._handed < TURN_LINES and self.at_once(line):
            self._handed += 1
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line or b"")
        if self._waiting_bytes > WAITING_BYTES and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | None:
        while not self._waiting:
            if self._problem is not None:
                raise self._problem
            if self._ended:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        self._handed += 1
        if self._handed > TURN_LINES:
            self._handed = 1
            await asyncio.sleep(0)
        line = self._waiting.popleft()
        self._waiting_bytes -= len(line or b"")
        if self._paused and self._waiting_bytes <= WAITING_BYTES:
            self._paused = False
            self._resume()
        return line
