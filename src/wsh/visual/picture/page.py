"""Pages that one viewer sees instead of the session's picture: earlier lines with a cursor and marks in them, or a text.

What a page means and what the keys in it do is the viewer's business; here it is only drawn, as everything is. Positions in a line count
characters, not columns: where a character lies is known where it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from wsh.terminal import TerminalModes
from wsh.visual.picture.cell import BLANK, Cell, CellRow, clip, encode, lay_spans, lay_text
from wsh.visual.picture.following import follow_col

if TYPE_CHECKING:
    from wsh.terminal import Terminal

PAGE_MODES = TerminalModes(
    bracketed_paste=True,
    application_cursor_keys=False,
    application_keypad=False,
    mouse=True,
    mouse_mode="button",
    mouse_format="sgr",
    focus_events=False,
    synchronized_output=False,
    alternate_scroll=False,
    reverse_colors=False,
    kitty_keyboard=0,
    cursor_shape="block",
    cursor_blinking=False,
    cursor_visible=True,
)
"""What a page asks of the viewer's terminal: plain keys, the wheel and the mouse's button."""

MarkKind: TypeAlias = Literal["selected", "found"]
_MARKS: dict[MarkKind, str] = {"selected": "7", "found": "38;5;16;48;5;220"}


class PageMark(NamedTuple):
    """Characters from `first` up to but without `end` of a line."""

    line: int
    first: int
    end: int
    kind: MarkKind


class Drawn(NamedTuple):
    rows: list[bytes]
    cursor: tuple[int, int] | None


@dataclass(frozen=True)
class LookBack:
    """Earlier lines by their absolute numbers, which hold in this `epoch`."""

    epoch: int
    line: int
    """The first one that is shown."""
    cursor: tuple[int, int]
    """Line and character."""
    marks: tuple[PageMark, ...] = ()

    def draw(self, terminal: Terminal, rows: int, cols: int) -> Drawn:
        gone = min(rows, max(0, terminal.first_line - self.line))
        kept = terminal.lines_between(self.line + gone, self.line + rows, styled=True)
        lines = [lay_text("(no longer kept)", "2") for _ in range(gone)]
        lines += [lay_spans([] if isinstance(line, str) else line) for line in kept]
        at = self.cursor[0] - self.line
        col = _column_of(lines[at], self.cursor[1]) if 0 <= at < len(lines) else 0
        left = follow_col(0, cols, col)
        for mark in self.marks:
            if 0 <= mark.line - self.line < len(lines):
                _put_mark(lines[mark.line - self.line], mark)
        drawn = [encode(clip(line, left, cols)) for line in lines]
        drawn += [b""] * (rows - len(drawn))
        return Drawn(drawn, (at, col - left) if 0 <= at < rows else None)


@dataclass(frozen=True)
class TextPage:
    """Lines of text, one of which may be `chosen`."""

    lines: tuple[str, ...]
    chosen: int | None = None

    def draw(self, terminal: Terminal, rows: int, cols: int) -> Drawn:
        drawn = [encode(self._lay(index, line, cols)) for index, line in enumerate(self.lines[:rows])]
        return Drawn([*drawn, *[b""] * (rows - len(drawn))], None)

    def _lay(self, index: int, line: str, cols: int) -> CellRow:
        text = "".join(character if character.isprintable() else "\ufffd" for character in line)
        cells = lay_text(text, "7" if index == self.chosen else "")
        if index == self.chosen:
            cells += [Cell(" ", "7")] * max(0, cols - len(cells))
        return clip(cells, 0, cols)


Page: TypeAlias = LookBack | TextPage


def _column_of(cells: CellRow, character: int) -> int:
    """The column where a character of the line lies; behind the end if there are not so many."""
    for col, cell in enumerate(cells):
        if cell is not None:
            character -= len(cell.text)
            if character < 0:
                return col
    return len(cells)


def _put_mark(cells: CellRow, mark: PageMark) -> None:
    first = _column_of(cells, mark.first)
    end = _column_of(cells, mark.end)
    if mark.kind == "selected" and not cells:
        cells.append(BLANK)  # an empty line that is selected is seen to be
        end = 1
    for col in range(first, end):
        cell = cells[col]
        if cell is not None:
            cells[col] = Cell(cell.text, _MARKS[mark.kind], cell.link)
