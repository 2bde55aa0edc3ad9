"""The lines of a session as the server keeps them, by absolute number: read in pieces as they are wanted, and searched."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from wsh.wire.json.object import JsonObject

SEARCH_S = 5.0
"""Processor time that a search may take."""
_PIECE = 1000
_ESCAPED = re.compile(r"\\.", re.DOTALL)
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

    def find_all(self, pattern: re.Pattern[str]) -> list[Place]:
        """Every place where the pattern occurs, in order. Raises SearchTooLong."""
        texts = [(line, self.text(line)) for line in range(self.first, self.end)]
        with _limited(SEARCH_S):
            return [(line, first) for line, text in texts for first, _ in find_in(pattern, text)]


class SearchTooLong(Exception):
    """The expression takes longer than anybody waits, as `(a+)+b` may."""


def find_in(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Where the pattern occurs in a line: first character, and the one behind the last."""
    return [match.span() for match in pattern.finditer(text) if match.end() > match.start()]


def search_pattern(text: str) -> tuple[re.Pattern[str], str]:
    """The regular expression, or the text as it stands where it is none, which the second value then says.

    Capitals count only where there are some, those of a class such as `\\S` left out.
    """
    flags = 0 if any(character.isupper() for character in _ESCAPED.sub("", text)) else re.IGNORECASE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text, flags), ""
    except (re.error, OverflowError, RecursionError) as problem:
        return re.compile(re.escape(text), flags), f"searched as plain text: {problem}"


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Inside, a search that takes longer raises: the matcher looks for signals."""

    def stop(_number: int, _frame: object) -> None:
        raise SearchTooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
