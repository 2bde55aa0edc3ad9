"""Rows of a terminal as VT bytes, each complete in itself.

The library's formatter is fast, and exact but for three things that are put right here: a row of background colour
without text comes out empty; cells that nobody wrote take the style of the text before them; and hyperlinks are left
out of VT output (its HTML has them).
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

from wsh.terminal.engine import native
from wsh.terminal.engine.native import Native
from wsh.terminal.engine.view import find_view, forget_view
from wsh.terminal.width import columns

_HTML = re.compile(r'<a href="([^"]*)">|(</a>)|<[^>]*>|([^<]+)')
_ENTITY = re.compile(r"&(?:#(\d+)|(\w+));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_ESCAPE = re.compile(r"(\x1b\[[0-9;:]*m)")
_ESCAPES = re.compile(rb"\x1b\[[0-9;:]*m")
_MAY_BLEED = re.compile(rb"\x1b\[(?!0m)[0-9;:]*m[^\x1b]* \x1b\[0m")
_SHOWS = rb"\x1b\[(?:7|9|21|53|4(?::[0-9])?|48[;:][0-9;:]*)m"
_MAY_SPAN = re.compile(_SHOWS + rb"(?:\x1b\[[0-9;:]*m)*[^\x1b]* [^\x1b]")
"""A run whose style is seen on blanks, with a blank before other text of the same style."""
_RUN = re.compile(r"((?:\x1b\[[0-9;:]*m)*)([^\x1b]*)")
_SHOWN = re.compile(_SHOWS.decode())
_BLANKS = re.compile(r" +")
_GAP = _NOTHING = b"\0" * 8
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
NOTHING_FLOWS: frozenset[int] = frozenset()


class ActiveRows:
    """The visible rows with style and links. Only those that changed since the last look are read."""

    __slots__ = ("_fragile", "_full", "flowing", "rows")

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self.flowing = NOTHING_FLOWS
        """Rows whose line goes on in the next one, and which are full up to there."""
        self._full: Set[int] = NOTHING_FLOWS
        self._fragile = False
        """Whether a row ends where a wide character did not fit: the library changes it together with the row below, and does not say so."""

    def forget(self) -> None:
        """Nothing that was read counts any more."""
        self.rows = []

    def refresh(self, terminal: Native, rows: int, cols: int, *, all_of_them: bool) -> bool:
        """Read them anew, those that changed or `all_of_them`; says whether any is another than before."""
        anew = len(self.rows) != rows
        known, full = ([b""] * rows if anew else self.rows), set(self._full)
        if anew or all_of_them or self._fragile:
            forget_view(terminal)
            full.clear()
            self._fragile = False
        self.forget()  # for the case that this fails
        changed = self._read_changed(terminal, known, full, cols)
        self.rows, self._full = known, full
        if full or self.flowing:
            # That a row is continued on the next one is no change to the library.
            self.flowing = frozenset(
                y for y in full if y + 1 < rows and known[y + 1] and native.row_flags(terminal, native.ACTIVE, y)[1]
            )
        return changed or anew

    def _read_changed(self, terminal: Native, known: list[bytes], full: set[int], cols: int) -> bool:
        changed = find_view(terminal).take_changed()
        if not changed:
            return False
        first, last = changed[0].y, changed[-1].y
        made = _split(native.format_rows(terminal, native.ACTIVE, first, last, cols, native.VT), last - first + 1)
        blank, nearly, new = bytes(8 * cols), cols - 1, False
        for y, linked, cells in changed:
            row = made[y - first]
            full.discard(y)
            if cells[-8:] != _NOTHING and native.lacks_wide(cells):
                self._fragile = True
            if not row:
                if cells != blank and cells.strip(b"\0"):
                    row = _background_row(memoryview(cells).cast("Q").tolist())
            else:
                if len(row) >= nearly and native.are_full(cells):
                    full.add(y)
                if b"\x1b" in row and (_MAY_BLEED.search(row) or _MAY_SPAN.search(row)) and _GAP in cells.rstrip(b"\0"):
                    row = _in_segments(terminal, native.ACTIVE, y, memoryview(cells).cast("Q").tolist())
                if linked:
                    row = _with_links(terminal, native.ACTIVE, y, cols, row)
            if row != known[y]:
                known[y] = row
                new = True
        return new


def read_screen_rows(terminal: Native, first: int, last: int, cols: int) -> list[bytes]:
    """Rows counted from the oldest that is kept, with style and links."""
    return read_wrapped_rows(terminal, first, last, cols)[0]


def read_wrapped_rows(terminal: Native, first: int, last: int, cols: int) -> tuple[list[bytes], list[bool]]:
    """The same, and for each row whether it goes on in the next."""
    wraps = [False] * (last - first + 1)
    found = _split(native.format_rows(terminal, native.SCREEN, first, last, cols, native.VT), last - first + 1)
    for index, row in enumerate(found):
        y = first + index
        if not row:
            cells = native.row_cells(terminal, native.SCREEN, y, cols)
            if any(cells):
                found[index] = _background_row(cells)
            continue
        if (_MAY_BLEED.search(row) and _bleeds(terminal, y, row)) or (
            _MAY_SPAN.search(row) and _spans_gap(terminal, y, row)
        ):
            cells = native.row_cells(terminal, native.SCREEN, y, cols)
            found[index] = row = _in_segments(terminal, native.SCREEN, y, cells)
        linked, wraps[index] = native.row_flags(terminal, native.SCREEN, y)
        if linked:
            found[index] = _with_links(terminal, native.SCREEN, y, cols, row)
    return found, wraps


def _bleeds(terminal: Native, y: int, row: bytes) -> bool:
    """Whether a styled run ends in cells that nobody wrote. Only plain ASCII can be counted without looking."""
    if not row.isascii():
        return True
    column = at = 0
    for end in _MAY_BLEED.finditer(row):
        reset = end.end() - len(b"\x1b[0m")
        column += len(_ESCAPES.sub(b"", row[at:reset]))
        at = reset
        if native.is_blank(terminal, native.SCREEN, column - 1, y):
            return True
    return False


def _spans_gap(terminal: Native, y: int, row: bytes) -> bool:
    """Whether blanks inside of a run that is seen on blanks are cells that nobody wrote; such a gap reaches an end of its blanks."""
    column = 0
    for style, text in _RUN.findall(row.decode("utf-8", "replace")):
        if " " in text and _SHOWN.search(style):
            for blanks in _BLANKS.finditer(text):
                first = column + columns(text[: blanks.start()])
                last = first + len(blanks[0]) - 1
                if any(native.is_blank(terminal, native.SCREEN, x, y) for x in {first, last}):
                    return True
        column += columns(text)
    return False


def _in_segments(terminal: Native, tag: int, y: int, cells: list[int]) -> bytes:
    """A row put together from its written parts, with plain blanks between them."""
    parts: list[bytes] = []
    end = len(cells)
    while end and not cells[end - 1]:
        end -= 1
    x = 0
    while x < end:
        start = x
        while x < end and not cells[x]:
            x += 1
        parts.append(b" " * (x - start))
        start = x
        while x < end and cells[x]:
            x += 1
        part = native.format_cells(terminal, tag, y, start, x - 1)
        parts.append(part or _background_row(cells[start:x]))
    return b"".join(parts)


def read_plain_rows(terminal: Native, tag: int, first: int, last: int, cols: int) -> list[str]:
    """Rows as right-trimmed text."""
    text = native.format_rows(terminal, tag, first, last, cols, native.PLAIN).decode("utf-8", "replace")
    rows = [row.rstrip(" ") for row in text.split("\n")] if text else []
    rows += [""] * (last - first + 1 - len(rows))
    return rows


def _split(text: bytes, count: int) -> list[bytes]:
    rows = text.split(b"\r\n") if text else []
    rows += [b""] * (count - len(rows))
    return rows


_cell_background = lru_cache(maxsize=1024)(native.cell_background)


def _background_row(cells: list[int]) -> bytes:
    parts: list[str] = []
    current = ""
    blanks = 0
    for cell in cells:
        colour = _cell_background(cell) if cell else ""
        if colour != current:
            parts.append(" " * blanks)
            parts.append(f"\x1b[0m\x1b[{colour}m" if colour else "\x1b[0m")
            current, blanks = colour, 0
        blanks += 1
    if current:
        parts.append(" " * blanks + "\x1b[0m")
    return "".join(parts).encode() if len(parts) > 1 else b""


def _with_links(terminal: Native, tag: int, y: int, cols: int, row: bytes) -> bytes:
    html = native.format_rows(terminal, tag, y, y, cols, native.HTML).decode("utf-8", "replace")
    marks = find_links(html)
    if not marks:
        return row
    return insert_links(row.decode("utf-8", "replace"), marks).encode()


def find_links(html: str) -> list[tuple[int, str]]:
    """Where links begin (with their address) and end (with none), counted in characters of text."""
    marks: list[tuple[int, str]] = []
    at = 0
    for address, closing, text in _HTML.findall(html):
        if text:
            at += len(_unescape(text))
        elif closing:
            marks.append((at, ""))
        elif address:
            raw = _unescape(address)
            try:
                raw = raw.encode("latin-1").decode("utf-8", "replace")
            except UnicodeEncodeError:
                pass
            marks.append((at, _CONTROL.sub("", raw)))
    return marks


def _unescape(text: str) -> str:
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda found: chr(int(found[1])) if found[1] else _NAMED.get(found[2], found[0]), text)


def insert_links(row: str, marks: list[tuple[int, str]]) -> str:
    parts: list[str] = []
    at = 0
    pending = iter(marks)
    mark = next(pending, None)
    for index, part in enumerate(_ESCAPE.split(row)):
        if index & 1:
            parts.append(part)
            continue
        start = 0
        while mark is not None and mark[0] <= at + len(part):
            if mark[1] and mark[0] == at + len(part):
                break  # it begins with the next run of text
            cut = mark[0] - at
            parts.append(part[start:cut])
            parts.append(f"\x1b]8;;{mark[1]}\x1b\\")
            start = cut
            mark = next(pending, None)
        parts.append(part[start:])
        at += len(part)
    while mark is not None and not mark[1]:
        parts.append("\x1b]8;;\x1b\\")
        mark = next(pending, None)
    return "".join(parts)
