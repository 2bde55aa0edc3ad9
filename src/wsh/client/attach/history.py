"""The lines of a session as the server keeps them, by absolute number: read in pieces as they are wanted, and searched."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from wsh.client.attach.column import column_of, width_of
from wsh.wire.json.object import JsonObject

SEARCH_S = 5.0
"""Processor time that a search may take."""
_PIECE = 1000
_ESCAPED = re.compile(r"\\.", re.DOTALL)
Place: TypeAlias = tuple[int, int]
"""A line and a character in it."""
Found: TypeAlias = tuple[int, int, int]
"""The place of a match, and how many characters it has; it may go on in the next rows."""


class History:
    def __init__(self, read: Callable[[int, int], JsonObject], cols: int = 80) -> None:
        """`read(first, count)` gives lines as the server's scrollback does; `cols` is the session's width."""
        self._read = read
        self._cols = cols
        newest = read(1 << 52, 1)  # behind every line
        self.epoch = int(newest["epoch"])
        self.end = int(newest["total_lines"])
        """The number behind the last line. Lines that come later are not part of this."""
        self.first = max(0, self.end - int(newest["total"]))
        self._pieces: dict[int, list[str]] = {}
        self._wrapped: set[int] | None = set() if "wrapped" in newest else None
        """Of the lines that were read, those that go on in the next; None where the server is too old to tell."""

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
                if self._wrapped is not None:
                    self._wrapped.update(int(one) for one in page.get("wrapped", ()))
        at = line - piece * _PIECE
        lines = self._pieces[piece]
        return lines[at] if at < len(lines) else ""

    def goes_on(self, line: int) -> bool:
        """Whether the screen broke a line behind this row. Of a server that does not tell, a row that fills the width counts."""
        text = self.text(line)
        if line >= self.end - 1:
            return False
        return line in self._wrapped if self._wrapped is not None else column_of(text, len(text)) >= self._cols

    def first_row(self, line: int) -> int:
        """The row in which a line begins that the screen broke."""
        while line > self.first and self.goes_on(line - 1):
            line -= 1
        return line

    def last_row(self, line: int) -> int:
        """The row in which such a line ends."""
        while self.goes_on(line):
            line += 1
        return line

    def whole_row(self, line: int) -> str:
        """The text of a row, with the blanks at its end if it goes on in the next.

        One column is no blank where the next row begins with a character that takes two: that one did not fit.
        """
        text = self.text(line)
        if not self.goes_on(line):
            return text
        blanks = self._cols - column_of(text, len(text))
        following = self.text(line + 1)
        return text if blanks == 1 and following and width_of(following[0]) == 2 else text + " " * blanks

    def find_all(self, pattern: re.Pattern[str]) -> list[Found]:
        """Every place where the pattern occurs, in order; a line that the screen broke is searched as one. Raises SearchTooLong."""
        lines: list[tuple[int, str]] = []
        line = self.first
        while line < self.end:
            last = self.last_row(line)
            lines.append((line, "".join(self.whole_row(row) for row in range(line, last + 1))))
            line = last + 1
        with _limited(SEARCH_S):
            return [found for line, text in lines for found in self._find_in(pattern, line, text)]

    def _find_in(self, pattern: re.Pattern[str], row: int, text: str) -> Iterator[Found]:
        """Where the pattern occurs in a line that begins in `row`."""
        start = 0
        for match in pattern.finditer(text):
            first, end = match.span()
            if end > first:
                while first - start >= (length := len(self.whole_row(row))):
                    row, start = row + 1, start + length
                yield row, first - start, end - first


class SearchTooLong(Exception):
    """The expression takes longer than anybody waits, as `(a+)+b` may."""


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
