"""A session's journal as a film: what was printed, when, and at which size.

Read from disk, so it works for a session that runs, one that ended, and one whose server died. Times are those the keeper noted, about a
hundredth of a second fine; what the journal no longer has is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from wsh.session.record.journal import Journal
from wsh.session.record.sidecar import Record, read_records
from wsh.session.recovery.gap import Gaps


@dataclass(frozen=True)
class Printed:
    """Bytes that came at `at_s` seconds after the recording's start."""

    at_s: float
    offset: int
    data: bytes


@dataclass(frozen=True)
class RecordedSize:
    at_s: float
    rows: int
    cols: int


@dataclass(frozen=True)
class Ended:
    at_s: float
    exit_code: int


Moment: TypeAlias = Printed | RecordedSize | Ended


class Film(Protocol):
    """What was printed, when, and at which size; the whole of it or a part."""

    rows: int
    cols: int

    @property
    def started(self) -> float: ...

    @property
    def duration_s(self) -> float: ...

    def moments(self) -> Iterator[Moment]: ...


class Recording:
    """The film of one session's folder."""

    def __init__(
        self, folder: Path, rows: int, cols: int, gaps: Gaps | None = None, nonces: tuple[str, ...] = ()
    ) -> None:
        """`rows` and `cols` are the size it was started with; `gaps` and the `nonces` of its marks are not shown."""
        self._journal = Journal(folder, gaps, nonces)
        self._records = sorted(read_records(folder), key=lambda r: (r.offset, r.time_us))
        self.rows, self.cols = rows, cols
        first_size = next((r for r in self._records if r.is_size and r.offset == 0), None)
        if first_size is not None:
            self.rows, self.cols = first_size.rows, first_size.cols

    @property
    def started(self) -> float:
        """Seconds since the epoch of the first thing that is known."""
        return min((r.time_us for r in self._records), default=0) / 1e6

    @property
    def duration_s(self) -> float:
        return (max((r.time_us for r in self._records), default=0) / 1e6 - self.started) if self._records else 0.0

    def moments(self, since: int = 0) -> Iterator[Moment]:
        """Everything in order, from offset `since` on."""
        start = self.started
        marks = [r for r in self._records if r.offset >= since or r.is_size]
        index = 0
        last_s = 0.0
        for piece in self._journal.read(max(since, self._journal.oldest)):
            position, data = piece.offset, memoryview(piece.data)
            while data:
                while index < len(marks) and marks[index].offset <= position:
                    last_s = max(last_s, marks[index].time_us / 1e6 - start)
                    happened = _happened(marks[index], last_s)
                    index += 1
                    if happened is not None and not isinstance(happened, Ended):
                        yield happened
                until = marks[index].offset if index < len(marks) else position + len(data)
                take = min(len(data), max(1, until - position))
                yield Printed(last_s, position, bytes(data[:take]))
                data, position = data[take:], position + take
        for record in (*marks[index:], *(r for r in marks[:index] if r.is_exit)):
            last_s = max(last_s, record.time_us / 1e6 - start)
            happened = _happened(record, last_s)
            if happened is not None:
                yield happened


def _happened(record: Record, at_s: float) -> Moment | None:
    if record.is_size:
        return RecordedSize(at_s, record.rows, record.cols)
    if record.is_exit:
        status = record.extra
        return Ended(at_s, 128 + (status & 0x7F) if status & 0x7F else (status >> 8) & 0xFF)
    return None
