"""What a command printed, kept in the order in which it came, under one rising cursor.

Both streams share the numbering: a cursor is the number of bytes that came before, of either. Whole characters only, so
that text never breaks where one reading ends and the next begins; the oldest bytes make room for the newest.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from wsh.wire.buffer import OutputBuffer

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


MAX_TURNS = 16 * 1024
"""Streams that take turns byte by byte are remembered so many times; what is older is dropped."""


class OutputLog:
    """Append from one place, read from anywhere, `changed` to wait for more. `raw` has both streams as one."""

    def __init__(self, max_bytes: int) -> None:
        self.raw = OutputBuffer(max_bytes)
        self.wake, self.changed = self.raw.wake, self.raw.changed
        self._turns: list[tuple[int, Stream]] = []
        """From which offset on which stream spoke."""
        self._partial: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    @property
    def start(self) -> int:
        return self.raw.start

    @property
    def end(self) -> int:
        return self.raw.end

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
        self.raw.skip(count)

    def _store(self, stream: Stream, data: bytes) -> None:
        if not data:
            return
        if not self._turns or self._turns[-1][1] != stream:
            self._turns.append((self.end, stream))
            if len(self._turns) > MAX_TURNS:
                self.raw.forget(self._turns[1][0])
        self.raw.append(data)
        gone = 0
        while len(self._turns) > gone + 1 and self._turns[gone + 1][0] <= self.start:
            gone += 1
        if gone:
            del self._turns[:gone]

    def read(self, cursor: int | None = None, max_bytes: int = 1024 * 1024) -> Reading:
        """What came since `cursor`; without one, from the oldest kept byte. A cursor past the end reads nothing."""
        chunk = self.raw.read(cursor, max_bytes)
        stop = chunk.next_cursor
        parts: dict[Stream, list[bytes]] = {"stdout": [], "stderr": []}
        turns: list[tuple[int, Stream]] = [*self._turns, (self.end, "stdout")]
        for (begin, stream), (end, _) in pairwise(turns):
            if end <= chunk.offset or begin >= stop:
                continue
            first = max(begin, chunk.offset)
            data = chunk.data[first - chunk.offset : end - chunk.offset]
            if end > stop:  # the rest of a character belongs to the next reading
                data = data[: _whole_characters(data)] or data
                stop = first + len(data)
            parts[stream].append(data)
        return Reading(
            _text(parts["stdout"]), _text(parts["stderr"]), chunk.offset, stop, chunk.dropped, stop < self.end
        )


def _text(parts: Iterable[bytes]) -> str:
    return b"".join(parts).decode("utf-8", "replace")


def _whole_characters(data: bytes) -> int:
    """How many bytes of `data` end with a whole character (or with something that will never be one)."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    tail = data[-4:]
    decoder.decode(tail)
    unfinished, _ = decoder.getstate()
    return len(data) - len(unfinished)
