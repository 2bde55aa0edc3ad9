"""A bounded stretch of output with absolute byte offsets, so that a reader can go on where it stopped.

The oldest bytes make room for the newest; a reader that comes too late is told how many it missed. It knows bytes alone:
streams, characters and lines are the business of the rooms that keep output in it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

_PIECE_BYTES = 64 * 1024
_SMALL_BYTES = 4 * 1024
"""Less than this is put together with what came before it; more is kept as it came, without a copy."""


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
    """Append at the end, read from a cursor. `changed` wakes those who wait for more.

    It is kept in pieces: one long array would be copied again and again while its beginning is dropped.
    """

    def __init__(self, max_bytes: int, start: int = 0) -> None:
        self.max_bytes = max_bytes
        self.start = start
        self.end = start
        """Offset after the newest byte."""
        self._pieces: deque[bytes | bytearray] = deque()
        self._dropped = 0
        """Bytes of the oldest piece that are no longer kept."""
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def kept_bytes(self) -> int:
        return self.end - self.start

    def append(self, data: bytes | memoryview) -> None:
        size = len(data)
        last = self._pieces[-1] if self._pieces else b""
        if size > self.max_bytes:
            self._empty(self.end + size - self.max_bytes)
            self._pieces.append(bytes(data[size - self.max_bytes :]))
            self.end += self.max_bytes
        elif isinstance(last, bytearray) and len(last) + size <= _PIECE_BYTES:
            last += data
            self.end += size
        elif size:
            self._pieces.append(bytes(data) if size >= _SMALL_BYTES else bytearray(data))
            self.end += size
        self.forget(self.end - self.max_bytes)
        self.wake()

    def forget(self, offset: int) -> None:
        """Keep nothing from before `offset`."""
        over = min(offset, self.end) - self.start
        if over <= 0:
            return
        self.start += over
        self._dropped += over
        while self._pieces and self._dropped >= len(self._pieces[0]):
            self._dropped -= len(self._pieces.popleft())

    def truncate(self, end: int) -> None:
        """Take the newest bytes back, from offset `end` on."""
        if end < self.end:
            kept = self.read(None, max(0, end - self.start)).data
            self._empty(self.start)
            if kept:
                self._pieces.append(kept)
            self.end += len(kept)

    def skip(self, count: int) -> None:
        """Account for `count` bytes that were printed but never reached us."""
        if count > 0:
            self._empty(self.end + count)

    def _empty(self, offset: int) -> None:
        self.start = self.end = offset
        self._pieces.clear()
        self._dropped = 0

    def read(self, cursor: int | None = None, max_bytes: int | None = None) -> OutputChunk:
        """What came since `cursor`; without one, from the oldest kept byte. A cursor past the end reads nothing."""
        wanted = self.start if cursor is None else min(cursor, self.end)
        first = max(wanted, self.start)
        stop = self.end if max_bytes is None else min(self.end, first + max_bytes)
        found: list[memoryview] = []
        at = self.end
        for piece in reversed(self._pieces):  # most readers want the newest
            if at <= first:
                break
            at -= len(piece)
            if at < stop:
                found.append(memoryview(piece)[max(0, first - at) : stop - at])
        return OutputChunk(first, b"".join(reversed(found)), first - wanted)

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
