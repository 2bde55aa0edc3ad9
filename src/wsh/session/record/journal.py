"""Reading back what a session printed. Writing is the keeper's.

Segments are named by the absolute offset of their first byte; a gap between two of them is output that was dropped (the oldest
segment of a bounded journal, or a full disk). A reader says what it could not give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wsh.session.recovery.gap import Gaps
from wsh.session.shell.mark import NonceMask

_SEGMENT = re.compile(r"journal\.(\d{20})\.raw")
_CHUNK = 256 * 1024


@dataclass(frozen=True)
class Piece:
    """Bytes that were printed from `offset` on."""

    offset: int
    data: bytes


class Journal:
    """The segments of one session's folder, as they are on disk now."""

    def __init__(self, folder: Path, gaps: Gaps | None = None, nonces: tuple[str, ...] = ()) -> None:
        """`gaps` are given as NUL: what reads it is going to have it parsed. The `nonces` of shells' marks become zeros."""
        self.folder = folder
        self._gaps = gaps
        self._nonces = nonces

    def segments(self) -> list[tuple[int, int, Path]]:
        """(first offset, size, path) of each segment, in order."""
        found: list[tuple[int, int, Path]] = []
        try:
            entries = list(self.folder.iterdir())
        except OSError:
            return []
        for path in entries:
            name = _SEGMENT.fullmatch(path.name)
            if name:
                try:
                    found.append((int(name[1]), path.stat().st_size, path))
                except FileNotFoundError:
                    continue  # dropped by the keeper between the two looks
        found.sort()
        return found

    @property
    def oldest(self) -> int:
        """Offset of the first byte that is kept."""
        segments = self.segments()
        return segments[0][0] if segments else 0

    @property
    def end(self) -> int:
        segments = self.segments()
        return segments[-1][0] + segments[-1][1] if segments else 0

    def read(self, start: int, end: int | None = None) -> Iterator[Piece]:
        """Pieces from `start` up to `end`, in order; an offset that jumps is a gap."""
        masks = [NonceMask(nonce) for nonce in self._nonces]
        position = start
        for first, size, path in self.segments():
            last = first + size
            if last <= position or (end is not None and first >= end):
                continue
            try:
                with path.open("rb") as file:
                    position = max(position, first)
                    file.seek(position - first)
                    while end is None or position < end:
                        want = _CHUNK if end is None else min(_CHUNK, end - position)
                        data = file.read(want)
                        if not data:
                            break
                        shown = self._gaps.blank(position, data) if self._gaps else data
                        for mask in masks:
                            shown = mask.hide(shown)
                        yield Piece(position, shown)
                        position += len(data)
            except OSError:
                continue

    def read_bytes(self, start: int, end: int) -> tuple[bytes, int]:
        """What is kept of [start, end), and how many bytes of it are missing."""
        data = b"".join(piece.data for piece in self.read(start, end))
        return data, max(0, end - start - len(data))
