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
class _Piece:
    offset: int
    stream: Stream
    data: bytes

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
        self._pieces.append(_Piece(self.end, stream, data))
        self.end += len(data)
        floor = self.end - self.max_bytes
        while self._pieces and self._pieces[0].offset < floor:
            piece = self._pieces.popleft()
            if piece.end > floor:
                self._pieces.appendleft(_Piece(floor, piece.stream, piece.data[floor - piece.offset :]))
                self.start = floor
                break
            self.start = piece.end
        self.wake()

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
            data = piece.data[max(0, first - piece.offset) : stop - piece.offset]
            if piece.end > stop:
                data = data[: _whole_characters(data)] or data
                stop = max(piece.offset, first) + len(data)
            parts[piece.stream].append(data)
        return Reading(_text(parts["stdout"]), _text(parts["stderr"]), first, stop, first - wanted, stop < self.end)

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
