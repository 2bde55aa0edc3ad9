"""The journal's sidecar: when output came, when the terminal changed its size, when the child ended."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from wsh.process.keeper import layout

_RECORD = struct.Struct(layout.RECORD)
Resize: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Record:
    """At `offset` bytes of output, `time_us` microseconds after the epoch: kind, and the size where that is the kind."""

    offset: int
    time_us: int
    kind: int
    rows: int
    cols: int
    extra: int

    @property
    def is_size(self) -> bool:
        return self.kind == layout.KIND_SIZE

    @property
    def is_exit(self) -> bool:
        return self.kind == layout.KIND_EXIT


def read_records(folder: Path) -> Iterator[Record]:
    """All records, in the order they were written; a torn one at the end of a file is left out.

    A segment begins by restating the size. Only in the oldest one is that news; in a later one it may even be stale, if
    a resize reached the keeper after the segment was begun.
    """
    for number, path in enumerate(sorted(folder.glob("journal.*.idx"))):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        usable = len(data) - len(data) % _RECORD.size
        for offset, time_us, kind, rows, cols, note, extra in _RECORD.iter_unpack(data[:usable]):
            if note == layout.RESTATED and number > 0:
                continue
            yield Record(offset, time_us, kind, rows, cols, extra)


def read_resizes(folder: Path, since: int) -> list[Resize]:
    """(offset, rows, cols) of every change of size at or after offset `since`, in order."""
    found = [(r.offset, r.rows, r.cols) for r in read_records(folder) if r.is_size and r.offset >= since]
    found.sort(key=lambda resize: resize[0])
    return found
