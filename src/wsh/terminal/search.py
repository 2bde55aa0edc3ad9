"""Find text in what a terminal keeps.

The library's own search knows only literal needles and reports untracked grid positions; expressions and absolute line
numbers need the text anyway, which it prints at some 10 million lines a second. So lines are printed and searched here,
wrapped ones joined as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wsh.terminal.engine import native
from wsh.terminal.row import read_plain_rows
from wsh.terminal.screen import Match
from wsh.terminal.width import columns
from wsh.wire.error import InvalidPattern

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal


def find_matches(
    terminal: Terminal,
    pattern: str,
    *,
    regex: bool,
    ignore_case: bool,
    since_line: int | None,
    limit: int,
    newest_first: bool,
) -> list[Match]:
    if not pattern:
        raise InvalidPattern(pattern, "it is empty")
    flags = re.IGNORECASE if ignore_case else 0
    try:
        wanted = re.compile(pattern if regex else re.escape(pattern), flags)
    except re.error as problem:
        raise InvalidPattern(pattern, str(problem)) from None
    first = terminal.first_line if since_line is None else max(since_line, terminal.first_line)
    found: list[Match] = []
    for number, rows in _kept_lines(terminal, first):
        text = "".join(rows)
        for match in wanted.finditer(text):
            if match.start() == match.end():
                continue
            found.append(_place(number, rows, match.start(), match.end(), match[0]))
            if not newest_first and len(found) >= limit:
                return found
    if newest_first:
        found.reverse()
    return found[:limit]


def _kept_lines(terminal: Terminal, first: int) -> Iterator[tuple[int, list[str]]]:
    beneath = terminal.beneath()
    top = terminal.screen_line
    if beneath is not None and first < top:
        yield from wrapped_lines(beneath, first, top)
    if beneath is not None or terminal.alt:
        first = max(first, top)
    yield from wrapped_lines(terminal, first, terminal.total_lines)


def _place(number: int, rows: list[str], start: int, end: int, text: str) -> Match:
    """Characters of a joined line as columns of the row where they begin."""
    for row in rows:
        if start < len(row):
            return Match(number, columns(row[:start]), columns(row[:end]), text)
        start -= len(row)
        end -= len(row)
        number += 1
    return Match(number, start, end, text)


def wrapped_lines(terminal: Terminal, first: int, last: int) -> Iterator[tuple[int, list[str]]]:
    """Logical lines between two numbers: the number of the first row, and the rows it wraps over.

    A row that goes on keeps the blanks at its end, so that the rows joined are the line as it was printed.
    """
    shift = terminal._numbers.shift
    first = max(first, terminal.first_line)
    rows = (
        read_plain_rows(terminal.handle, native.SCREEN, first - shift, last - 1 - shift, terminal.cols)
        if first < last
        else []
    )
    number, group = first, []
    for index, row in enumerate(rows):
        y = first + index - shift
        if index + 1 < len(rows) and native.row_flags(terminal.handle, native.SCREEN, y)[1]:
            missing = terminal.cols - columns(row)
            if missing and native.wraps_after(terminal.handle, native.SCREEN, y, terminal.cols) != "narrow":
                row += " " * missing
            group.append(row)
            continue
        group.append(row)
        yield number, group
        number, group = first + index + 1, []
    if group:
        yield number, group
