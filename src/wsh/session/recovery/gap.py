"""Parts of a session's output that its terminal must not be given, as [start, end) of offsets.

They stay in the journal. An empty part at an offset stands for a change of size there that must not be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_MOST = 256
MARGINS_OFF = b"\x1b[?69l"
"""Stands in front of what is left out: most deaths come of scrolling between left and right margins, and would come again."""


class Gaps:
    def __init__(self, parts: Iterable[tuple[int, int]] = ()) -> None:
        self._parts: list[tuple[int, int]] = []
        for start, end in parts:
            self.add(start, end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._parts)

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def size(self) -> int:
        """Bytes that are left out."""
        return sum(end - start for start, end in self._parts)

    @property
    def end(self) -> int:
        """From here on nothing is left out."""
        return self._parts[-1][1] if self._parts else 0

    def add(self, start: int, end: int) -> None:
        merged: list[tuple[int, int]] = []
        for first, last in sorted([*self._parts, (start, end)]):
            if merged and first <= merged[-1][1] and (first, last) != (merged[-1][1], first):
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        while len(merged) > _MOST:  # what lies between the two oldest goes with them
            merged[:2] = [(merged[0][0], merged[1][1])]
        self._parts = merged

    def meets(self, start: int, end: int) -> bool:
        """Whether any of [start, end) is left out."""
        return any(first < end and last > start and first < last for first, last in self._parts)

    def skips_resize(self, offset: int) -> bool:
        return any(first <= offset <= last for first, last in self._parts)

    def blank(self, start: int, data: bytes) -> bytes:
        """`data`, which lies at `start`, with NUL for what is left out: every terminal ignores that, and offsets stay.

        Where it fits, what is left out begins with the end of left and right margins.
        """
        end = start + len(data)
        if start >= self.end or not self.meets(start, end):
            return data
        blanked = bytearray(data)
        for first, last in self._parts:
            at, size = max(first, start), min(last, end) - max(first, start)
            if size > 0:
                filled = MARGINS_OFF.ljust(size, b"\0") if size >= len(MARGINS_OFF) else bytes(size)
                blanked[at - start : at - start + size] = filled
        return bytes(blanked)
