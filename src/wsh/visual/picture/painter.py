"""From one picture to the next, as few bytes as it takes.

A painter stands for all viewers of one shape: it remembers what they show and makes the bytes that bring them to what is true now. Lines
that scrolled off the program's screen are sent first, so that a viewer's own scrollback has them; where there are many, a frame takes
as many as its time allows and the next ones bring the rest, while the picture itself is always the newest. Everything is wrapped in a
synchronised update; an emulator that does not know that shows the same, only not at once.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wsh.terminal import TerminalModes
from wsh.visual.mode import change_modes
from wsh.visual.picture.cell import clip, encode, lay_text
from wsh.visual.picture.compositor import Picture, Viewport
from wsh.visual.picture.page import PAGE_MODES, Page

if TYPE_CHECKING:
    from wsh.terminal import Terminal
    from wsh.visual.stage import Stage

BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PIECE = 32
"""Lines that are read before looking at the clock again."""


@dataclass(frozen=True)
class ViewShape:
    """What makes two viewers see the same bytes."""

    rows: int
    cols: int
    status: bool = False
    top: int = 0
    left: int = 0
    note: str = ""
    """What stands in the last row instead of anything else."""
    prefix: str = ""
    """The key that texts name, where it is not Ctrl+\\."""
    page: Page | None = None
    """What is shown instead of the session's picture."""
    read_only: bool = False
    wheel: bool = False
    """Whether the viewer's terminal reports the wheel where the program does not want the mouse."""

    @property
    def picture_rows(self) -> int:
        """Rows for the picture: the last one is the status line's."""
        return max(1, self.rows - 1) if self.status and self.rows > 1 else self.rows


@dataclass(frozen=True)
class _Shown:
    rows: list[bytes]
    alternate: bool
    modes: TerminalModes
    cursor: tuple[int, int] | None
    title: str
    first_line: int
    epoch: int
    size: tuple[int, int]


class Painter:
    def __init__(
        self, terminal: Terminal, stage: Stage, picture: Picture, shape: ViewShape, scrolled_lines: int
    ) -> None:
        self.shape = shape
        self._terminal = terminal
        self._stage = stage
        self._picture = picture
        self._scrolled_lines = scrolled_lines
        self._shown: _Shown | None = None
        self._pushed = 0
        """The first line that is not yet in the viewers' scrollback."""
        self.behind = False
        """Whether lines that scrolled off wait for the next frame."""
        self._status_drawn = ("", b"")
        self.status = ""
        """Text of the status line."""
        self.banner = ""
        """Something that every viewer must see, such as who captured the keys and how to end it."""

    # whole pictures and differences

    def full(self, scrollback_lines: int = 0, *, renew: bool = False) -> bytes:
        """Everything a fresh emulator needs; does not change what is remembered, unless nothing was.

        `renew`: the emulator forgets the earlier lines that it has before they come.
        """
        now = self._shown
        if now is None:
            self._shown = now = self._look()
            self._pushed, self.behind = now.first_line, False
        out = [BEGIN, b"\x1b[?1049l\x1b[r\x1b[?6l\x1b[?7h\x1b[0m\x1b[H\x1b[2J"]
        if scrollback_lines and not now.alternate:
            if renew:
                out.append(b"\x1b[3J")
            out += self._history(now, scrollback_lines)
        if now.alternate:
            out.append(b"\x1b[?1049h\x1b[H\x1b[2J")
        out += [_row(index, row) for index, row in enumerate(now.rows) if row]
        out.append(_title(now.title))
        out.append(change_modes(None, now.modes, now.cursor is not None, None))
        out += [_place(now.cursor), END]
        return b"".join(out)

    def change(self, until: float | None = None) -> bytes:
        """What brings the viewers from what they show to what is true; empty if that is the same.

        Lines that scrolled off are added up to the time `until`, by the performance counter; `behind` says if some are left.
        """
        before = self._shown
        if before is None:
            return self.full()
        now = self._look()
        self._shown = now
        out: list[bytes] = []
        rows = before.rows
        if before.alternate != now.alternate or before.size != now.size:
            if before.alternate != now.alternate:
                out.append(b"\x1b[?1049h" if now.alternate else b"\x1b[?1049l")
            out.append(b"\x1b[0m\x1b[H\x1b[2J")
            rows = [b""] * len(now.rows)
            self._pushed, self.behind = now.first_line, False
        else:
            scrolled, rows = self._scroll(before, now, until)
            out += scrolled
        out += [
            _row(i, new)
            for i, (old, new) in enumerate(zip(rows, now.rows, strict=True))
            if old is not new and old != new
        ]
        if before.title != now.title:
            out.append(_title(now.title))
        visible, was_visible = now.cursor is not None, before.cursor is not None
        if before.modes != now.modes or visible != was_visible:
            out.append(change_modes(before.modes, now.modes, visible, was_visible))
        if not out and before.cursor == now.cursor:
            return b""
        return b"".join([BEGIN, *out, _place(now.cursor), END])

    @property
    def used_rows(self) -> int | None:
        """How far down the viewers' normal screen something is shown; None while they show the alternate one."""
        shown = self._shown
        if shown is None or shown.alternate:
            return None
        used = min(self.shape.picture_rows, len(shown.rows))
        while used and not shown.rows[used - 1]:
            used -= 1
        return used

    # looking

    def _look(self) -> _Shown:
        stage, terminal, shape = self._stage, self._terminal, self.shape
        if shape.page is not None:
            return self._look_at_page(shape.page)
        window = Viewport(shape.top, shape.left, min(shape.picture_rows, stage.rows - shape.top), shape.cols)
        rows = self._picture.rows(window)
        rows = self._frame(rows, stage.cols - shape.left)
        screen = terminal.cursor
        cursor: tuple[int, int] | None = None
        if screen.visible and not stage.has_canvas:
            row = stage.layout.first_row + screen.row - shape.top
            col = screen.col - shape.left
            if 0 <= row < shape.picture_rows and 0 <= col < shape.cols:
                cursor = (row, col)
        alternate = stage.mode == "alt"
        return _Shown(
            rows=rows,
            alternate=alternate,
            modes=self._modes(alternate),
            cursor=cursor,
            title=terminal.title,
            first_line=terminal.total_lines if alternate else terminal.screen_line,
            epoch=terminal.epoch,
            size=(stage.rows, stage.cols),
        )

    def _modes(self, alternate: bool) -> TerminalModes:
        modes = self._terminal.modes
        # On the alternate screen the emulator itself turns the wheel into arrows.
        if self.shape.wheel and not modes.mouse and not alternate:
            return replace(modes, mouse=True, mouse_mode="normal", mouse_format="sgr")
        return modes

    def _look_at_page(self, page: Page) -> _Shown:
        terminal, shape = self._terminal, self.shape
        drawn = page.draw(terminal, shape.picture_rows, shape.cols)
        alternate = self._stage.mode == "alt"
        return _Shown(
            rows=self._frame(drawn.rows, shape.cols),
            alternate=alternate,
            modes=PAGE_MODES,
            cursor=drawn.cursor,
            title=terminal.title,
            first_line=terminal.total_lines if alternate else terminal.screen_line,
            epoch=terminal.epoch,
            size=(self._stage.rows, self._stage.cols),
        )

    def _frame(self, rows: list[bytes], width: int) -> list[bytes]:
        """Fill up to the viewer's size: a border where it is larger than the session, the status line, the banner."""
        shape = self.shape
        if width < shape.cols:
            edge = b"\x1b[%dG\x1b[2m\xe2\x94\x82\x1b[0m" % (width + 1)
            rows = [row + edge for row in rows]
        missing = shape.picture_rows - len(rows)
        if missing > 0:
            line = "─" * min(width, shape.cols) + ("┘" if width < shape.cols else "")
            rows = [*rows, b"\x1b[2m%s\x1b[0m" % line.encode(), *[b""] * (missing - 1)]
        if shape.picture_rows < shape.rows:
            if self._status_drawn[0] != self.status:
                self._status_drawn = (self.status, encode(lay_text(self.status[: shape.cols].ljust(shape.cols), "7")))
            rows = [*rows, self._status_drawn[1]]
        if shape.note:
            bar = lay_text(f" {shape.note}".ljust(shape.cols), "38;5;16;48;5;44")
            rows = [*rows[:-1], encode(clip(bar, 0, shape.cols))]
        elif self.banner:
            text = f" {self.banner} "[: shape.cols]
            at = shape.cols - len(text) + 1
            rows = [*rows[:-1], rows[-1] + b"\x1b[%dG" % at + encode(lay_text(text, "38;5;16;48;5;44"))]
        return rows

    # lines that scrolled off

    def _scroll(self, before: _Shown, now: _Shown, until: float | None) -> tuple[list[bytes], list[bytes]]:
        """Push what left the screen into the viewer's scrollback; the rows it shows afterwards."""
        if self.shape.page is not None:
            self.behind = False  # what scrolls off meanwhile is pushed when the picture is back
            return [], before.rows
        if now.alternate or before.epoch != now.epoch or now.first_line < before.first_line:
            self._pushed, self.behind = now.first_line, False
            return [], before.rows
        # A gap in the scrollback is better than a viewer that shows what was long ago.
        at = max(self._pushed, now.first_line - self._scrolled_lines)
        out: list[bytes] = []
        rows, height = before.rows, len(now.rows)
        while at < now.first_line and (until is None or not out or time.perf_counter() < until):
            batch = self._terminal.vt_lines_between(at, min(at + min(height, _PIECE), now.first_line))
            if not batch:
                at = now.first_line
                break
            at += len(batch)
            # Overwritten first where they differ, then pushed out at the top by feeding lines at the bottom.
            out += [_row(i, new) for i, (old, new) in enumerate(zip(rows, batch, strict=False)) if old != new]
            out.append(b"\x1b[%d;1H" % height + b"\n" * len(batch))
            rows = [*rows[len(batch) :], *[b""] * len(batch)]
        self._pushed, self.behind = at, at < now.first_line
        if out and self._stage.cols > self.shape.cols:
            out = [
                b"\x1b[?7l",
                *out,
                b"\x1b[?7h",
            ]  # a line that is wider than the viewer must not flow into the next row
        return out, rows

    def _history(self, now: _Shown, count: int) -> list[bytes]:
        first = max(self._terminal.first_line, now.first_line - count)
        lines = self._terminal.vt_lines_between(first, now.first_line) if first < now.first_line else []
        height = len(now.rows)
        out = [line + b"\x1b[0m\r\n" for line in lines]
        if out:
            # The row that the last line end began is empty: it stays, or it would be a gap in the scrollback.
            out += [b"\x1b[%d;1H" % height, b"\n" * min(height - 1, len(lines)), b"\x1b[H\x1b[2J"]
        return out


def _row(index: int, row: bytes) -> bytes:
    # Erased before it is drawn: erasing behind a full row would take its last character.
    return b"\x1b[%d;1H\x1b[0m\x1b[2K%s" % (index + 1, row)


def _place(cursor: tuple[int, int] | None) -> bytes:
    return b"" if cursor is None else b"\x1b[0m\x1b[%d;%dH" % (cursor[0] + 1, cursor[1] + 1)


def _title(title: str) -> bytes:
    return b"\x1b]2;%s\x1b\\" % _UNSAFE.sub("", title).encode("utf-8", "replace")
