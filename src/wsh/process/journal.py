"""Reading journals back: bytes by offset, and the records of sizes, times and exits beside them.

Whatever is intact is given; what is missing shows as a jump in the offsets. Nothing here writes. The files are those
that `keeper/journal.py` makes.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wsh.process.keeper import layout

_NAME = re.compile(r"journal\.(\d{20})\.(raw|idx)")
_record = struct.Struct(layout.RECORD)
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Segment:
    start: int
    length: int
    path: Path

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True)
class Record:
    """Something that happened when the stream stood at `offset`."""

    offset: int
    time_us: int
    kind: int  # layout.KIND_OUTPUT, KIND_SIZE or KIND_EXIT
    rows: int
    cols: int
    extra: int


def list_segments(folder: Path) -> list[Segment]:
    """Segments in order of their offsets. One that overlaps the next is cut where the next begins."""
    found = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return []
    for entry in entries:
        match = _NAME.fullmatch(entry.name)
        if match and match[2] == "raw" and entry.is_file(follow_symlinks=False):
            found.append(Segment(int(match[1]), entry.stat(follow_symlinks=False).st_size, Path(entry.path)))
    found.sort(key=lambda segment: segment.start)
    return [
        Segment(one.start, min(one.length, after.start - one.start), one.path) if after else one
        for one, after in zip(found, [*found[1:], None], strict=True)
    ]


def read(folder: Path, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Pieces of [start, end) as (offset, bytes), in order; where bytes are missing the next offset jumps."""
    for segment in list_segments(folder):
        low = max(start, segment.start)
        high = segment.end if end is None else min(end, segment.end)
        if low >= high:
            continue
        try:
            with segment.path.open("rb", buffering=0) as file:
                file.seek(low - segment.start)
                while low < high:
                    data = file.read(min(_CHUNK_BYTES, high - low))
                    if not data:
                        break
                    yield low, data
                    low += len(data)
        except OSError:
            continue


def read_records(folder: Path, start: int = 0) -> Iterator[Record]:
    """Records at or after `start`. A file cut in the middle of a record ends before it."""
    names = sorted(entry for entry in _listdir(folder) if (match := _NAME.fullmatch(entry)) and match[2] == "idx")
    for name in names:
        try:
            data = (folder / name).read_bytes()
        except OSError:
            continue
        for at in range(0, len(data) - layout.RECORD_BYTES + 1, layout.RECORD_BYTES):
            offset, time_us, kind, rows, cols, _, extra = _record.unpack_from(data, at)
            if offset >= start:
                yield Record(offset, time_us, kind, rows, cols, extra)


def _listdir(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
