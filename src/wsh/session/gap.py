"""Parts of a session's output that its terminal must not be given, as [start, end) of offsets.

They stay in the journal. An empty part at an offset stands for a change of size there that must not be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_MOST = 256


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

    def cut(self, start: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        """What is not left out of `data`, which lies at `start`: in order, each part with its offset."""
        at, end = start, start + len(data)
        for first, last in self._parts:
            if last <= at or first == last:
                continue
            if first >= end:
                break
            if first > at:
                yield at, data[at - start : first - start]
            at = min(last, end)
        if at < end:
            yield at, data[at - start :]

    def blank(self, start: int, data: bytes) -> bytes:
        """`data`, which lies at `start`, with NUL for what is left out: every terminal ignores that, and offsets stay."""
        if start >= self.end or not self.meets(start, start + len(data)):
            return data
        blanked = bytearray(len(data))
        for at, part in self.cut(start, data):
            blanked[at - start : at - start + len(part)] = part
        return bytes(blanked)
