"""What a command printed, kept in the order in which it came, under one rising cursor.

Both streams share the numbering: a cursor is the number of bytes that came before, of either. Whole characters only, so
that text never breaks where one reading ends and the next begins; the oldest bytes make room for the newest.
"""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Stream: TypeAlias = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Reading:
    stdout: str
    stderr: str
    cursor: int
    next_cursor: int
    dropped_bytes: int
    more: bool
    """Whether kept output lies beyond `next_cursor` already."""


@dataclass(frozen=True)
class RawReading:
    """Both streams as one; see `Reading`."""

    data: bytes
    cursor: int
    dropped_bytes: int
    more: bool


PIECE_BYTES = 64 * 1024
MAX_PIECES = 16 * 1024
"""Streams that take turns byte by byte make many pieces; they, too, are bounded."""


@dataclass
class _Piece:
    """A stretch of one stream. Grows while that stream goes on, up to a size."""

    offset: int
    stream: Stream
    data: bytearray

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class OutputLog:
    """Append from one place, read from anywhere, `changed` to wait for more."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.start = 0
        self.end = 0
        self._pieces: deque[_Piece] = deque()
        self._partial: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def kept_bytes(self) -> int:
        return self.end - self.start

    def append(self, stream: Stream, data: bytes) -> None:
        data = self._partial[stream] + data
        cut = _whole_characters(data)
        self._partial[stream] = data[cut:]
        self._store(stream, data[:cut])

    def finish(self) -> None:
        """No more will come: what looked like half a character is shown as it is."""
        for stream in ("stdout", "stderr"):
            rest, self._partial[stream] = self._partial[stream], b""
            self._store(stream, rest)
        self.wake()

    def skip(self, count: int) -> None:
        """Account for bytes that were printed but never reached us."""
        if count > 0:
            self._pieces.clear()
            self.end += count
            self.start = self.end

    def _store(self, stream: Stream, data: bytes) -> None:
        if not data:
            return
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.stream == stream and len(last.data) < PIECE_BYTES:
            last.data += data
        else:
            self._pieces.append(_Piece(self.end, stream, bytearray(data)))
        self.end += len(data)
        self._make_room()
        self.wake()

    def _make_room(self) -> None:
        floor = self.end - self.max_bytes
        while self._pieces and (self._pieces[0].offset < floor or len(self._pieces) > MAX_PIECES):
            first = self._pieces[0]
            if first.end > floor and len(self._pieces) <= MAX_PIECES:
                del first.data[: floor - first.offset]
                first.offset = self.start = floor
                return
            self.start = first.end
            self._pieces.popleft()

    def read(self, cursor: int | None = None, max_bytes: int = 1024 * 1024) -> Reading:
        """What came since `cursor`; without one, from the oldest kept byte. A cursor past the end reads nothing."""
        wanted = self.start if cursor is None else min(cursor, self.end)
        first = max(wanted, self.start)
        stop = min(self.end, first + max_bytes)
        parts: dict[Stream, list[bytes]] = {"stdout": [], "stderr": []}
        for piece in self._pieces:
            if piece.end <= first:
                continue
            if piece.offset >= stop:
                break
            data = bytes(piece.data[max(0, first - piece.offset) : stop - piece.offset])
            if piece.end > stop:
                data = data[: _whole_characters(data)] or data
                stop = max(piece.offset, first) + len(data)
            parts[piece.stream].append(data)
        return Reading(_text(parts["stdout"]), _text(parts["stderr"]), first, stop, first - wanted, stop < self.end)

    def read_raw(self, cursor: int | None = None, max_bytes: int = 1024 * 1024) -> RawReading:
        """As `read`, in bytes: for a terminal, whose streams are one."""
        wanted = self.start if cursor is None else min(cursor, self.end)
        first = max(wanted, self.start)
        stop = min(self.end, first + max_bytes)
        parts = [
            bytes(piece.data[max(0, first - piece.offset) : max(0, stop - piece.offset)])
            for piece in self._pieces
            if piece.end > first and piece.offset < stop
        ]
        return RawReading(b"".join(parts), first, first - wanted, stop < self.end)

    def wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def changed(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)


def _text(parts: Iterable[bytes]) -> str:
    return b"".join(parts).decode("utf-8", "replace")


def _whole_characters(data: bytes) -> int:
    """How many bytes of `data` end with a whole character (or with something that will never be one)."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    tail = data[-4:]
    decoder.decode(tail)
    unfinished, _ = decoder.getstate()
    return len(data) - len(unfinished)
