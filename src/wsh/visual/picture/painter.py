"""From one picture to the next, as few bytes as it takes.

A painter stands for all viewers of one shape: it remembers what they show and makes the bytes that bring them to what is true now. Lines
that scrolled off the program's screen are sent first, so that a viewer's own scrollback has them; where there are many, a frame takes
as many as its time allows and the next ones bring the rest, while the picture itself is always the newest. A line that takes several
rows is made to wrap in the viewer's emulator too, which then copies and finds it as one. Everything is inside of a synchronised update;
an emulator that does not know that shows the same, only not at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Set
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from wsh.terminal import TerminalModes
from wsh.visual.mode import change_modes
from wsh.visual.picture.cell import clip, encode, lay_text
from wsh.visual.picture.compositor import Picture, Viewport
from wsh.visual.picture.page import PAGE_MODES, Page

if TYPE_CHECKING:
    from wsh.terminal import Terminal
    from wsh.visual.stage import Stage

BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
_CLEAR = b"\x1b[0m\x1b[H\x1b[2K\x1b[1;2H\x1b[J\x1b[H"
"""Clears the screen without `CSI 2 J`, nor `CSI J` in the first cell: tmux and others then put a copy of the screen into their history."""
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOTHING_FLOWS: frozenset[int] = frozenset()
_WRAP = "\u3000".encode()
"""A wide blank behind a row that is full, or has only one column left, makes an emulator wrap. It is erased at once."""
_PLAIN = re.compile(rb"[ -~]*")
_PIECE = 32
"""Lines that are read before looking at the clock again."""


class ViewShape(NamedTuple):
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
    has_taken: bool = False
    """Whether the viewer has taken the keyboard over."""
    wheel: bool = False
    """Whether the viewer's terminal reports the wheel where the program does not want the mouse."""

    @property
    def picture_rows(self) -> int:
        """Rows for the picture: the last one is the status line's."""
        return max(1, self.rows - 1) if self.status and self.rows > 1 else self.rows


class _Shown(NamedTuple):
    rows: list[bytes]
    used: int
    """How many of them show something, the border and the status line left out."""
    alternate: bool
    modes: TerminalModes
    cursor: tuple[int, int] | None
    title: str
    first_line: int
    epoch: int
    size: tuple[int, int]
    flowed: frozenset[int] = _NOTHING_FLOWS
    """Rows that go on with the line of the row above."""


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
        self.left_out = False
        """Whether the last change left lines out that scrolled off: the viewers' scrollback has a gap."""
        self.since = 0
        """The first line after that gap."""
        self._prints_plainly = False
        """Whether what the program printed last came out as it is: in the colours of the terminal, at the cursor."""
        self._kept: int | None = None
        """While they show the alternate screen: the first line that their scrollback has not got."""
        self._status_drawn = ("", b"")
        self._modes_wheel = (PAGE_MODES, PAGE_MODES)
        """Modes that the program set last, and the same with the wheel reported."""
        self.name = ""
        """The title where the program gives none."""
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
        out = [BEGIN, b"\x1b[?1049l\x1b[r\x1b[?6l\x1b[?7h", _CLEAR]
        if scrollback_lines and not now.alternate:
            if renew:
                out.append(b"\x1b[3J")
            history, flows = self._history(now, scrollback_lines)
            out += history
            if flows:
                self._shown = now = now._replace(flowed=now.flowed | {0})
        if now.alternate:
            self._kept = None  # the receiver of this picture has no earlier lines
            out.append(b"\x1b[?1049h" + _CLEAR)
        out += _draw([b""] * len(now.rows), now.rows, _NOTHING_FLOWS, now.flowed, self.shape.cols)
        out.append(_title(now.title))
        out.append(change_modes(None, now.modes, now.cursor is not None, None))
        out += [_place(now.cursor), END]
        return b"".join(out)

    def change(self, until: float | None = None) -> bytes:
        """What brings the viewers from what they show to what is true; empty if that is the same.

        Lines that scrolled off are added up to the time `until`, by the performance counter; `behind` says if some are left.
        """
        before = self._shown
        self.left_out = False
        if before is None:
            return self.full()
        now = self._look()
        self._shown = now
        self._prints_plainly = _is_as_printed(before, now)
        out: list[bytes] = []
        if before.alternate != now.alternate or before.size != now.size:
            if before.alternate != now.alternate:
                out.append(b"\x1b[?1049h" if now.alternate else b"\x1b[?1049l")
            out.append(_CLEAR)
            rows, flowed = [b""] * len(now.rows), _NOTHING_FLOWS
            # An emulator that takes another size wraps its lines anew, and some of them lay where the picture is drawn now.
            self.left_out = self.behind or before.size != now.size
            if now.alternate and not before.alternate:
                self._kept = self._pushed
            elif before.alternate and not now.alternate:
                self.left_out |= self._kept != now.first_line
            self._pushed = self.since = now.first_line
            self.behind = False
        else:
            scrolled, rows, flowed = self._scroll(before, now, until)
            out += scrolled
            if 0 in flowed and (self.behind or self._flows_into(now.first_line)):
                self._shown = now = now._replace(flowed=now.flowed | {0})
        out += _draw(rows, now.rows, flowed, now.flowed, self.shape.cols)
        if before.title != now.title:
            out.append(_title(now.title))
        visible, was_visible = now.cursor is not None, before.cursor is not None
        if (before.modes is not now.modes and before.modes != now.modes) or visible != was_visible:
            out.append(change_modes(before.modes, now.modes, visible, was_visible))
        if not out and before.cursor == now.cursor:
            return b""
        return b"".join([BEGIN, *out, _place(now.cursor), END])

    def print_ahead(self, text: bytes) -> bool:
        """Whether `text`, which the program is known to print next, can be shown as it is: the cursor is at the end of a plain row with room for it.

        The viewers are then taken to show it. Should the program's screen turn out otherwise, the next change says so, as always.
        """
        shown, shape = self._shown, self.shape
        if not self._prints_plainly or shown is None or shown.cursor is None or self.behind or shape.page is not None:
            return False
        at, col = shown.cursor
        row, end = shown.rows[at], col + len(text)
        if len(row) > col or not _PLAIN.fullmatch(row) or end >= min(shape.cols, self._stage.cols - shape.left):
            return False
        if at + 1 in shown.flowed:
            return False
        rows = shown.rows.copy()
        rows[at] = row.ljust(col) + text
        self._shown = shown._replace(rows=rows, cursor=(at, end), used=max(shown.used, at + 1))
        return True

    @property
    def used_rows(self) -> int | None:
        """How far down the viewers' normal screen something is shown; None while they show the alternate one."""
        return None if self._shown is None or self._shown.alternate else self._shown.used

    @property
    def awaited(self) -> int:
        """How many lines are still to come between the viewers' scrollback and the screen that they show."""
        return self._shown.first_line - self._pushed if self.behind and self._shown is not None else 0

    @property
    def place(self) -> dict[str, object]:
        """The number of the first line that the viewers' scrollback has not got, and what numbers count in; empty on the alternate screen."""
        now = self._shown
        return {} if now is None or now.alternate else {"line": self._pushed, "epoch": now.epoch}

    # looking

    def _look(self) -> _Shown:
        stage, terminal, shape = self._stage, self._terminal, self.shape
        if shape.page is not None:
            return self._look_at_page(shape.page)
        window = Viewport(shape.top, shape.left, min(shape.picture_rows, stage.rows - shape.top), shape.cols)
        drawn = self._picture.rows(window)
        screen = terminal.cursor
        cursor: tuple[int, int] | None = None
        if screen.visible and not stage.has_canvas:
            row = stage.layout.first_row + screen.row - shape.top
            col = screen.col - shape.left
            if 0 <= row < shape.picture_rows and 0 <= col < shape.cols:
                cursor = (row, col)
        alternate = stage.mode == "alt"
        rows = self._frame(drawn, stage.cols - shape.left)
        return _Shown(
            rows=rows,
            flowed=self._find_flowed(rows) if terminal.flowing_rows else _NOTHING_FLOWS,
            used=_count_used(drawn),
            alternate=alternate,
            modes=self._modes(alternate),
            cursor=cursor,
            title=terminal.title or self.name,
            first_line=terminal.total_lines if alternate else terminal.screen_line,
            epoch=terminal.epoch,
            size=(stage.rows, stage.cols),
        )

    def _find_flowed(self, rows: list[bytes]) -> frozenset[int]:
        """Where a row of the program flows into the next and the viewer shows both as they are, with nothing beside or above them."""
        program = self._terminal.vt_rows()
        first = self._stage.layout.first_row - self.shape.top
        return frozenset(
            first + index + 1
            for index in self._terminal.flowing_rows
            if 0 <= first + index < len(rows) - 1
            and rows[first + index] is program[index]
            and rows[first + index + 1] is program[index + 1]
        )

    def _flows_into(self, line: int) -> bool:
        """Whether the line above the viewer's first row goes on in it."""
        terminal, shape, stage = self._terminal, self.shape, self._stage
        normal = stage.mode != "alt" and not terminal.alt
        plain = normal and shape.page is None and not shape.top and not stage.layout.first_row
        return plain and terminal.first_line < line and terminal.wraps(line - 1)

    def _modes(self, alternate: bool) -> TerminalModes:
        modes = self._terminal.modes
        # On the alternate screen the emulator itself turns the wheel into arrows.
        if self.shape.wheel and not modes.mouse and not alternate:
            if modes is not self._modes_wheel[0]:
                self._modes_wheel = (modes, replace(modes, mouse=True, mouse_mode="normal", mouse_format="sgr"))
            return self._modes_wheel[1]
        return modes

    def _look_at_page(self, page: Page) -> _Shown:
        terminal, shape = self._terminal, self.shape
        drawn = page.draw(terminal, shape.picture_rows, shape.cols)
        alternate = self._stage.mode == "alt"
        return _Shown(
            rows=self._frame(drawn.rows, shape.cols),
            used=_count_used(drawn.rows),
            alternate=alternate,
            modes=PAGE_MODES,
            cursor=drawn.cursor,
            title=terminal.title or self.name,
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
                bar = lay_text(self.status.ljust(shape.cols), "7")
                self._status_drawn = (self.status, encode(clip(bar, 0, shape.cols)))
            rows = [*rows, self._status_drawn[1]]
        if shape.note:
            bar = lay_text(f" {shape.note}".ljust(shape.cols), "38;5;16;48;5;44")
            rows = [*rows[:-1], encode(clip(bar, 0, shape.cols))]
        elif self.banner:
            cells = clip(lay_text(f" {self.banner} ", "38;5;16;48;5;44"), 0, shape.cols)
            at = shape.cols - len(cells) + 1
            rows = [*rows[:-1], rows[-1] + b"\x1b[%dG" % at + encode(cells)]
        return rows

    # lines that scrolled off

    def _scroll(
        self, before: _Shown, now: _Shown, until: float | None
    ) -> tuple[list[bytes], list[bytes], frozenset[int]]:
        """Push what left the screen into the viewer's scrollback; the rows it shows afterwards, and which of them flowed from the one above."""
        if self.shape.page is not None:
            self.behind = False  # what scrolls off meanwhile is pushed when the picture is back
            return [], before.rows, before.flowed
        if now.alternate or before.epoch != now.epoch or now.first_line < before.first_line:
            self._pushed, self.behind = now.first_line, False
            return [], before.rows, before.flowed
        # A gap in the scrollback is better than a viewer that shows what was long ago.
        at = max(self._pushed, now.first_line - self._scrolled_lines)
        self.left_out = at > self._pushed
        if self.left_out:
            self.since = at
        out: list[bytes] = []
        rows, flowed, height = before.rows, before.flowed, len(now.rows)
        fits, joins = self._stage.cols == self.shape.cols, not self.left_out
        piece = max(1, min(height - 1, _PIECE))  # with a row below, into which the last line may flow
        while at < now.first_line and (until is None or not out or time.perf_counter() < until):
            batch, flows = self._terminal.vt_lines_between(at, min(at + piece, now.first_line))
            if not batch:
                at = now.first_line
                break
            count = len(batch)
            flowing = {index + 1 for index, flow in enumerate(flows) if flow} if fits and True in flows else set()
            if 0 in flowed and joins and self._flows_into(at):
                flowing.add(0)
            joins = True
            if count in flowing and count < height:
                # Only where a row lies below the other can it be made to wrap into it.
                below = at + count
                batch += (
                    now.rows[:1]
                    if below == now.first_line and self._flows_into(below)
                    else self._terminal.vt_lines_between(below, below + 1)[0]
                )
            at += count
            # Overwritten first where they differ, then pushed out at the top by feeding lines at the bottom.
            drawn = len(batch)
            out += _draw(rows[:drawn], batch, flowed, flowing, self.shape.cols)
            out.append(b"\x1b[%d;1H" % height + b"\n" * count)
            rows = [*batch[count:], *rows[drawn:], *[b""] * count]
            if flowed or flowing:
                stay = {row for row in flowing if row < drawn} | {row for row in flowed if row >= drawn}
                flowed = frozenset(row - count for row in stay if row >= count)
        self._pushed, self.behind = at, at < now.first_line
        if out and self._stage.cols > self.shape.cols:
            out = [
                b"\x1b[?7l",
                *out,
                b"\x1b[?7h",
            ]  # a line that is wider than the viewer must not flow into the next row
        return out, rows, flowed

    def earlier_lines(self, count: int) -> tuple[int, bool]:
        """How many of the `count` lines above the picture there are, and whether there are more."""
        now = self._shown
        if now is None or now.alternate:
            return 0, False
        lines = now.first_line - self._terminal.first_line
        return min(count, lines), lines > count

    def lines_from(self, place: tuple[int, int] | None) -> int:
        """How many lines above the picture there are from one on, which is given with its epoch; 0 if its number no longer counts."""
        now = self._shown
        if now is None or place is None or place[0] != now.epoch:
            return 0
        return max(0, now.first_line - place[1])

    def _history(self, now: _Shown, count: int) -> tuple[list[bytes], bool]:
        """Earlier lines, and whether the last of them flows into the first row."""
        first = max(self._terminal.first_line, now.first_line - count)
        lines, flows = self._terminal.vt_lines_between(first, now.first_line)
        if not lines:
            return [], False
        height, fits = len(now.rows), self._stage.cols == self.shape.cols
        last = fits and flows[-1] and self._flows_into(now.first_line)
        wrap = b"\x1b[0m%s\r\x1b[2X" % _WRAP
        out = [
            line + (wrap if fits and flow else b"\x1b[0m\r\n")
            for line, flow in zip(lines, [*flows[:-1], last], strict=True)
        ]
        # The row that the last line end began is empty: it stays, or it would be a gap in the scrollback.
        out += [b"\x1b[%d;1H" % height, b"\n" * min(height - 1, len(lines)), b"\x1b[H" if last else _CLEAR]
        return out, last


def _count_used(rows: list[bytes]) -> int:
    used = len(rows)
    while used and not rows[used - 1]:
        used -= 1
    return used


def _is_as_printed(before: _Shown, now: _Shown) -> bool:
    """Whether plain text at the cursor made one picture of the other, or they are the same."""
    if before.cursor is None or now.cursor is None or before.cursor[0] != now.cursor[0]:
        return False
    (at, col), end = before.cursor, now.cursor[1]
    old, new = before.rows[at], now.rows[at]
    return _PLAIN.fullmatch(new) is not None and len(new) <= end and new[: len(old)] == old and len(old) <= col <= end


def _draw(before: list[bytes], now: list[bytes], flowed: Set[int], flowing: Set[int], cols: int) -> list[bytes]:
    """What differs, row by row. `flowed` are those rows that the emulator has as going on from the row above, and `flowing` those that do."""
    if not flowed and not flowing:
        return [
            _row(i, new) for i, (old, new) in enumerate(zip(before, now, strict=True)) if old is not new and old != new
        ]
    out: list[bytes] = []
    last = -1
    for i, (old, new) in enumerate(zip(before, now, strict=True)):
        changed = old is not new and old != new
        if i not in flowing:
            if changed or i in flowed:
                out.append(_row(i, new))
                last = i
            continue
        # Some emulators keep with a row that it goes on below, and forget that when it is drawn again.
        begins = i > 0 and (i not in flowed or last == i - 1)
        if begins:
            if last != i - 1:
                out.append(b"\x1b[%d;1H\x1b[0m%s" % (i, now[i - 1]))
            out.append(_WRAP)
        if begins or changed:
            # Erasing the line would also end that it goes on from the one above; erasing its characters does not.
            out.append(b"\x1b[%d;1H\x1b[0m\x1b[%dX%s" % (i + 1, cols, new))
            last = i
    return out


def _row(index: int, row: bytes) -> bytes:
    # Erased before it is drawn: erasing behind a full row would take its last character.
    return b"\x1b[%d;1H\x1b[0m\x1b[2K%s" % (index + 1, row)


def _place(cursor: tuple[int, int] | None) -> bytes:
    return b"" if cursor is None else b"\x1b[0m\x1b[%d;%dH" % (cursor[0] + 1, cursor[1] + 1)


def _title(title: str) -> bytes:
    return b"\x1b]2;%s\x1b\\" % _UNSAFE.sub("", title).encode("utf-8", "replace")
