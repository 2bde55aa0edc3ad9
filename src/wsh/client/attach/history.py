"""The lines of a session as the server keeps them, by absolute number: read in pieces as they are wanted, and searched."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from wsh.wire.json.object import JsonObject

_PIECE = 1000
Place: TypeAlias = tuple[int, int]
"""A line and a character in it."""


class History:
    def __init__(self, read: Callable[[int, int], JsonObject]) -> None:
        """`read(first, count)` gives lines as the server's scrollback does."""
        self._read = read
        newest = read(1 << 52, 1)  # behind every line
        self.epoch = int(newest["epoch"])
        self.end = int(newest["total_lines"])
        """The number behind the last line. Lines that come later are not part of this."""
        self.first = max(0, self.end - int(newest["total"]))
        self._pieces: dict[int, list[str]] = {}

    def text(self, line: int) -> str:
        """The text of a line; empty where it is no longer kept."""
        if not self.first <= line < self.end:
            return ""
        piece = line // _PIECE
        if piece not in self._pieces:
            start = piece * _PIECE
            page = self._read(start, _PIECE)
            if int(page["epoch"]) != self.epoch:
                self._pieces[piece] = []
            else:
                gone = max(0, int(page["first_line"]) - start)
                self._pieces[piece] = [""] * gone + [str(one) for one in page["lines"]]
        at = line - piece * _PIECE
        lines = self._pieces[piece]
        return lines[at] if at < len(lines) else ""

    def find(self, pattern: re.Pattern[str], start: Place, forwards: bool) -> Place | None:
        """The next place after `start` where the pattern occurs, around the end if need be."""
        if self.end <= self.first:
            return None
        count = self.end - self.first
        step = 1 if forwards else -1
        for distance in range(count + 1):
            line = self.first + (start[0] - self.first + step * distance) % count
            found = [match.start() for match in pattern.finditer(self.text(line)) if match.end() > match.start()]
            if distance == 0:
                found = [at for at in found if (at > start[1] if forwards else at < start[1])]
            if found:
                return line, found[0 if forwards else -1]
        return None


def search_pattern(text: str) -> re.Pattern[str]:
    """The text as it stands; capitals count only where there are some."""
    return re.compile(re.escape(text), 0 if text != text.lower() else re.IGNORECASE)
