"""What a terminal shows, as JSON: screens, scrollback, styled lines (pydantic)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from wsh.wire.model.base import Shown

Byte: TypeAlias = Annotated[int, Field(ge=0, le=255)]
Mode: TypeAlias = Literal["normal", "alt"]


class Rgb(Shown):
    r: Byte
    g: Byte
    b: Byte


class IndexedColor(Shown):
    indexed: Byte


class RgbColor(Shown):
    rgb: Rgb


ShownColor: TypeAlias = IndexedColor | RgbColor


class LineSpan(Shown):
    """A run of cells that look alike. Attributes are present only when set."""

    text: str
    fg: ShownColor | None = None
    bg: ShownColor | None = None
    bold: bool | None = None
    faint: bool | None = None
    italic: bool | None = None
    underline: bool | str | None = None
    strikethrough: bool | None = None
    blink: bool | None = None
    inverse: bool | None = None
    link: str | None = None


Line: TypeAlias = str | list[LineSpan]
"""A right-trimmed text (plain), or spans (styled); a blank styled line is []."""


class Cursor(Shown):
    row: int
    col: int
    visible: bool


class Screen(Shown):
    epoch: int
    """Grows when line numbering restarts."""
    first_line_index: int
    """Absolute number of the first row."""
    total_lines: int
    lines: list[Line]
    cursor: Cursor
    cols: int
    rows: int
    alternate_active: bool
    mode: Mode


class Scrollback(Shown):
    epoch: int
    lines: list[Line]
    total: int
    """All retained lines, the visible screen included."""
    total_lines: int
    offset: int
    first_line: int
    """Absolute number of the first line given."""
    wrapped: list[int] = Field(default_factory=list)
    """Absolute numbers of the lines given that go on in the next, because the screen was too narrow for them."""


class IdleAnswer(Shown):
    screen: Screen
    scrollback_lines: int
    generation: int
    last_activity_ms: int
    ended_by: str
    matched: str | None = None
    command_id: int | None = None
    session: str | None = None
