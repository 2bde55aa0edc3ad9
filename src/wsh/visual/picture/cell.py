"""Cells: text laid out in columns, with its style, and back to bytes that draw it.

A row is a list of cells; a wide character has its cell and a `None` behind it. Only text that is data gets here: no control character
can be in a cell, so nothing that is drawn from cells can do more than be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from unicodedata import category, east_asian_width

from wsh.wire.json.object import JsonObject
from wsh.wire.model.screen import IndexedColor, RgbColor

_BLANK_STYLE = ""
_OWN_WIDTHS = {"\u115f": 0, "\u2e3a": 2, "\u2e3b": 2}
_OWN_WIDTHS |= {chr(code): 1 for code in (*range(0xFFF9, 0xFFFC), 0x1171E, *range(0x13430, 0x13440))}
"""Where the terminal's engine and `wcwidth` differ otherwise."""
_LINK_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Cell(NamedTuple):
    text: str
    style: str
    """Parameters of SGR, such as "1;38;5;4"; empty for the default."""
    link: str = ""


CellRow: TypeAlias = list[Cell | None]
BLANK = Cell(" ", _BLANK_STYLE)

_FLAGS = {
    "bold": "1",
    "faint": "2",
    "italic": "3",
    "underline": "4",
    "blink": "5",
    "inverse": "7",
    "strikethrough": "9",
}


def sgr_of(part: Any, background: IndexedColor | RgbColor | None = None) -> str:
    """The style of a span or region write as parameters of SGR."""
    codes = [code for name, code in _FLAGS.items() if getattr(part, name, False)]
    if part.fg is not None:
        codes.append(_color(part.fg, 38))
    ground = part.bg if part.bg is not None else background
    if ground is not None:
        codes.append(_color(ground, 48))
    return ";".join(codes)


def sgr_of_wire(span: JsonObject) -> str:
    """The style of a terminal's span, which is plain JSON."""
    codes = [code for name, code in _FLAGS.items() if span.get(name)]
    for key, base in (("fg", 38), ("bg", 48)):
        color = span.get(key)
        if color is not None:
            codes.append(_numbers(color.get("indexed"), color.get("rgb"), base))
    return ";".join(codes)


def background_sgr(color: IndexedColor | RgbColor | None) -> str:
    return "" if color is None else _color(color, 48)


def _color(color: IndexedColor | RgbColor, base: int) -> str:
    if isinstance(color, IndexedColor):
        return f"{base};5;{color.indexed}"
    rgb = color.rgb
    return f"{base};2;{rgb.r};{rgb.g};{rgb.b}"


def _numbers(indexed: int | None, rgb: dict[str, int] | None, base: int) -> str:
    if indexed is not None:
        return f"{base};5;{indexed}"
    assert rgb is not None
    return f"{base};2;{rgb['r']};{rgb['g']};{rgb['b']}"


@lru_cache(maxsize=8192)
def width_of(character: str) -> int:
    """Columns that the terminal gives a character: 0 for one that combines with the one before."""
    if " " <= character <= "~":
        return 1
    if character in _OWN_WIDTHS:
        return _OWN_WIDTHS[character]
    if category(character) == "Mc":  # such as the vowel signs of Devanagari, which others draw into the cell before
        return 2 if east_asian_width(character) in "WF" else 1
    from wcwidth import wcwidth  # large tables, which a screen without them does not need

    return max(0, wcwidth(character))


def lay_text(text: str, style: str, link: str = "") -> CellRow:
    """One line of text as cells."""
    row: CellRow = []
    for character in text:
        width = width_of(character)
        if width == 0:
            if row:
                at = len(row) - 1 if row[-1] is not None else len(row) - 2
                before = row[at]
                assert before is not None
                if (
                    len(before.text) < 8
                ):  # enough for any real cluster; a tower of marks is data too, but not to be drawn
                    row[at] = Cell(before.text + character, before.style, before.link)
            continue
        row.append(Cell(character, style, link))
        if width == 2:
            row.append(None)
    return row


def lay_spans(spans: Iterable[JsonObject]) -> CellRow:
    """A terminal's styled line as cells."""
    row: CellRow = []
    for span in spans:
        row += lay_text(str(span["text"]), sgr_of_wire(span), str(span.get("link") or ""))
    return row


def put(row: CellRow, at: int, cells: Sequence[Cell | None]) -> None:
    """Write `cells` over `row` from column `at` on, clipped; a wide character cut in half becomes blanks."""
    end = min(len(row), at + len(cells))
    if at >= end:
        return
    if row[at] is None:
        before = row[at - 1]
        row[at - 1] = Cell(" ", before.style if before is not None else "")
    if end < len(row) and row[end] is None:
        row[end] = BLANK
    row[at:end] = cells[: end - at]
    last = row[end - 1]
    if last is not None and width_of(last.text[0]) == 2:
        row[end - 1] = Cell(" ", last.style)


def clip(row: Sequence[Cell | None], first: int, width: int) -> CellRow:
    """The columns from `first` on, `width` of them at most; a character cut in half is a blank."""
    part: CellRow = list(row[first : first + width])
    if part and part[0] is None:
        part[0] = BLANK
    if part and len(row) > first + width and row[first + width] is None:
        part[-1] = BLANK
    return part


def encode(cells: Iterable[Cell | None]) -> bytes:
    """Bytes that draw `cells` from the cursor on and leave the default style behind."""
    out: list[str] = []
    current, link = _BLANK_STYLE, ""
    for cell in cells:
        if cell is None:
            continue
        if cell.link != link:
            out.append(f"\x1b]8;;{_LINK_UNSAFE.sub('', cell.link)}\x1b\\")
            link = cell.link
        if cell.style != current:
            out.append(f"\x1b[0;{cell.style}m" if cell.style else "\x1b[0m")
            current = cell.style
        out.append(cell.text)
    if link:
        out.append("\x1b]8;;\x1b\\")
    if current:
        out.append("\x1b[0m")
    return "".join(out).encode("utf-8", "replace")
