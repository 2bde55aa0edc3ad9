"""What a reader gets: a screen, a page of scrollback, a cursor. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.wire.json.object import JsonObject

Span: TypeAlias = JsonObject
"""`{text, fg?, bg?, bold?, faint?, italic?, underline?, strikethrough?, blink?, inverse?, link?}`."""
StyledLine: TypeAlias = list[Span]
Line: TypeAlias = str | StyledLine
"""A right-trimmed string, or spans; shared with the terminal's cache, so never to be changed in place."""
ScreenMode: TypeAlias = Literal["normal", "alt"]
MouseMode: TypeAlias = Literal["none", "x10", "normal", "button", "any"]
CursorShape: TypeAlias = Literal["bar", "block", "underline", "block_hollow"]


@dataclass(frozen=True, slots=True)
class TerminalCursor:
    row: int
    col: int
    visible: bool

    def to_wire(self) -> JsonObject:
        return {"row": self.row, "col": self.col, "visible": self.visible}


@dataclass(frozen=True, slots=True)
class TerminalScreen:
    lines: list[Line]
    cursor: TerminalCursor
    rows: int
    cols: int
    mode: ScreenMode
    epoch: int
    first_line_index: int
    """Absolute number of the first row."""
    total_lines: int
    """Absolute number after the last line that holds something (blank rows below the cursor left out)."""
    version: int

    def to_wire(self) -> JsonObject:
        return {
            "epoch": self.epoch,
            "first_line_index": self.first_line_index,
            "total_lines": self.total_lines,
            "lines": self.lines,
            "cursor": self.cursor.to_wire(),
            "cols": self.cols,
            "rows": self.rows,
            "alternate_active": self.mode == "alt",
            "mode": self.mode,
        }


@dataclass(frozen=True, slots=True)
class ScrollbackPage:
    lines: list[Line]
    """In chronological order."""
    total: int
    """Lines that are retained, the visible screen included."""
    total_lines: int
    """Lines there have ever been: the absolute number of the line that comes next."""
    offset: int
    """Lines between the last one returned and the newest."""
    first_line: int
    """Absolute number of the first line returned."""
    epoch: int
    wrapped: list[int]
    """Absolute numbers of the lines returned that go on in the next, because the screen was too narrow for them."""

    def to_wire(self) -> JsonObject:
        return {
            "epoch": self.epoch,
            "lines": self.lines,
            "total": self.total,
            "total_lines": self.total_lines,
            "offset": self.offset,
            "first_line": self.first_line,
            "wrapped": self.wrapped,
        }


@dataclass(frozen=True, slots=True)
class TerminalModes:
    """The modes that the program set, as far as input and painting depend on them."""

    bracketed_paste: bool
    application_cursor_keys: bool
    application_keypad: bool
    mouse: bool
    mouse_mode: MouseMode
    mouse_format: Literal["x10", "utf8", "sgr", "urxvt", "sgr_pixels"]
    focus_events: bool
    synchronized_output: bool
    alternate_scroll: bool
    reverse_colors: bool
    kitty_keyboard: int
    cursor_shape: CursorShape
    cursor_blinking: bool
    cursor_visible: bool


@dataclass(frozen=True, slots=True)
class Match:
    """Where a text was found: an absolute line and a range of columns, `end` not included."""

    line: int
    start: int
    end: int
    text: str
