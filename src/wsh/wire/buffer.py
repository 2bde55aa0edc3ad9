"""A bounded stretch of output with absolute byte offsets, so that a reader can go on where it stopped.

The oldest bytes make room for the newest; a reader that comes too late is told how many it missed. It knows bytes alone:
streams, characters and lines are the business of the rooms that keep output in it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True)
class OutputChunk:
    """Output from `offset` on. `dropped` bytes before it were asked for and are no longer kept."""

    offset: int
    data: bytes
    dropped: int

    @property
    def next_cursor(self) -> int:
        return self.offset + len(self.data)


class OutputBuffer:
    """Append at the end, read from a cursor. `changed` wakes those who wait for more."""

    def __init__(self, max_bytes: int, start: int = 0) -> None:
        self.max_bytes = max_bytes
        self.start = start
        self._data = bytearray()
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def end(self) -> int:
        """Offset after the newest byte."""
        return self.start + len(self._data)

    @property
    def kept_bytes(self) -> int:
        return len(self._data)

    def append(self, data: bytes | memoryview) -> None:
        if len(data) > self.max_bytes:
            self.start = self.end + len(data) - self.max_bytes
            self._data = bytearray(data[len(data) - self.max_bytes :])
        else:
            self._data += data
            self.forget(self.end - self.max_bytes)
        self.wake()

    def forget(self, offset: int) -> None:
        """Keep nothing from before `offset`."""
        over = min(offset, self.end) - self.start
        if over > 0:
            del self._data[:over]  # moves where the bytes begin, not the bytes
            self.start += over

    def truncate(self, end: int) -> None:
        """Take the newest bytes back, from offset `end` on."""
        del self._data[max(0, end - self.start) :]

    def skip(self, count: int) -> None:
        """Account for `count` bytes that were printed but never reached us."""
        if count > 0:
            self.start = self.end + count
            self._data.clear()

    def read(self, cursor: int | None = None, max_bytes: int | None = None) -> OutputChunk:
        """What came since `cursor`; without one, from the oldest kept byte. A cursor past the end reads nothing."""
        wanted = self.start if cursor is None else min(cursor, self.end)
        first = max(wanted, self.start)
        stop = self.end if max_bytes is None else min(self.end, first + max_bytes)
        return OutputChunk(first, bytes(self._data[first - self.start : stop - self.start]), first - wanted)

    def wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def changed(self) -> None:
        """Return at the next append or wake."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
