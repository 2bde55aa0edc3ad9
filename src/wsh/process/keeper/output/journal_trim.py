"""A journal is trimmed: when its files would pass their limit, the oldest segment goes."""

from __future__ import annotations

import os


class Segment:
    __slots__ = ("idx_bytes", "raw_bytes", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.raw_bytes = 0
        self.idx_bytes = 0


def drop_oldest(folder: bytes, segments: list[Segment], budget: int) -> None:
    """Keep all segments together below `budget`, which leaves room for the one that is about to grow. One always stays."""
    total = sum(s.raw_bytes + s.idx_bytes for s in segments)
    while total > budget and len(segments) > 1:
        oldest = segments.pop(0)
        total -= oldest.raw_bytes + oldest.idx_bytes
        for suffix in (b"raw", b"idx"):
            try:
                os.unlink(b"%s/journal.%020d.%s" % (folder, oldest.start, suffix))
            except FileNotFoundError:
                pass
