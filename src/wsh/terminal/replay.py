"""The whole state as VT bytes, for an emulator that starts fresh.

Order matters: text first under default modes, then what changes how text is taken (margins, modes), the cursor last,
and at the very end the beginning of an unfinished sequence, so that the stream can go on from there. What the library
does not show (the normal screen under the alternate one, the saved cursor) is read from a copy of the terminal. Left out
on purpose: synchronized output and in-band size reports (they would freeze the viewer or make it answer) and the colours
of the palette.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wsh.terminal.engine import native
from wsh.terminal.engine.native import NULL, EngineError, lib
from wsh.terminal.engine.view import find_view
from wsh.terminal.hidden_screen import CANCEL, alternate_mode
from wsh.terminal.row import read_wrapped_rows
from wsh.terminal.snapshot import copy_of
from wsh.wire.error import SnapshotNotPossible

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

_LEFT_OUT = re.compile(rb"\x1b\[\?(?:3|40|47|1047|1048|1049|2026|2048)[hl]")
_MARGINS = re.compile(rb"\x1b\[(\d+);(\d+)([rs])")
_PLACE = re.compile(rb"^\x1b\[(\d+);(\d+)H")
_TITLE_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
ORIGIN = b"\x1b[?6h"
PLAIN_CHARSETS = b"\x1b(B\x1b)B\x1b*B\x1b+B\x0f"


def make_replay(terminal: Terminal, scrollback_lines: int | None) -> bytes:
    parts = [b"\x1bc"]
    if terminal.alt:
        parts += _under_alternate(terminal, scrollback_lines)
        parts += _text(terminal, 0)
    else:
        parts += _text(terminal, scrollback_lines)
    parts += _state(terminal)
    parts.append(_unfinished(terminal))
    return b"".join(parts)


def _unfinished(terminal: Terminal) -> bytes:
    if terminal.at_ground:
        return b""
    try:
        begun = native.take_allocated(
            lambda out, length: int(lib.ghostty_terminal_continuation_alloc(terminal.handle, NULL, out, length)),
            "continuation",
        )
        return bytes(begun)
    except EngineError:
        return b""  # longer than is kept: the rest of it will be lost on the other side


def _under_alternate(terminal: Terminal, scrollback_lines: int | None) -> list[bytes]:
    """The normal screen, and the switch to the alternate one in the way the program did it."""
    switch = b"\x1b[?%dh\x1b[0m" % alternate_mode(terminal)
    beneath = terminal.beneath()
    if beneath is None:
        return [switch, b"\x1b[H"]
    return [
        *_text(beneath, scrollback_lines),
        b"\x1b[0m",
        _place(beneath),
        _state_after(beneath, ("style", "charsets", "kitty_keyboard")),
        switch,
        PLAIN_CHARSETS,
        b"\x1b[H",
    ]


def _saved_cursor(terminal: Terminal) -> list[bytes]:
    try:
        copy = copy_of(terminal, history=False)
    except SnapshotNotPossible:
        return []
    with copy:
        copy.feed(CANCEL + b"\x1b[?6l\x1b8")
        place = _place(copy)
        pen = _state_after(copy, ("style", "charsets"))
    if place == b"\x1b[1;1H" and pen in (b"", b"\x1b[0m"):
        return []
    return [place, pen, b"\x1b7\x1b[0m", PLAIN_CHARSETS]


def _text(terminal: Terminal, scrollback_lines: int | None) -> list[bytes]:
    """The lines; one that wraps is left to wrap, so that the other side can reflow it too."""
    numbers = terminal._numbers
    base = terminal.screen_line
    first = terminal.first_line
    if scrollback_lines is not None:
        first = max(first, base - max(0, scrollback_lines))
    last = base + terminal.rows
    if first == base:
        last = max(terminal.total_lines, base + _last_painted(terminal))
    shift = numbers.shift
    rows, wraps = read_wrapped_rows(terminal.handle, first - shift, last - 1 - shift, terminal.cols)
    parts: list[bytes] = []
    final = len(rows) - 1
    for index, row in enumerate(rows):
        parts.append(row)
        if index < final:
            following = rows[index + 1]
            flows = wraps[index] and following
            parts.append(_between(terminal, first + index - shift, following) if flows else b"\r\n")
    return parts


def _between(terminal: Terminal, y: int, following: bytes) -> bytes:
    """What goes between a row that wraps and the next: nothing where that comes by itself, else a new line."""
    why = native.wraps_after(terminal.handle, native.SCREEN, y, terminal.cols)
    if not why:
        return b"\r\n"
    if following[0] != 0x1B:
        return b""
    # wrapping with a background set would paint the new row; a blank wraps first, and is printed over
    return b" \r" if why == "text" else b"\r\n"


def _last_painted(terminal: Terminal) -> int:
    rows = terminal.vt_rows()
    used = len(rows)
    while used and not rows[used - 1]:
        used -= 1
    return used


def _state_before(terminal: Terminal, extras: tuple[str, ...]) -> bytes:
    made, cell = native.format_with(terminal.handle, extras, ())
    return made[: len(made) - len(cell)]


def _state_after(terminal: Terminal, screen: tuple[str, ...], extras: tuple[str, ...] = ()) -> bytes:
    made, cell = native.format_with(terminal.handle, extras, screen)
    return made[len(cell) :]


def _state(terminal: Terminal) -> list[bytes]:
    tabs = _state_before(terminal, ("tabstops",))
    modes = _LEFT_OUT.sub(b"", _state_before(terminal, ("modes",)))
    margins = _state_after(terminal, (), ("scrolling_region",))
    place = _place(terminal)
    rest = _state_after(
        terminal, ("style", "hyperlink", "protection", "kitty_keyboard", "charsets"), ("keyboard", "pwd")
    )
    rest = rest.replace(b"\0", b"")  # the library prints the end mark of the directory's name too
    if ORIGIN in modes:
        place = _relative(place, margins)
    title = _TITLE_UNSAFE.sub("", terminal.title)
    shape = _cursor_shape(terminal)
    return [
        b"\x1b[0m",
        tabs if tabs != _default_tabs(terminal.cols) else b"",
        *_saved_cursor(terminal),
        # left and right margins are only understood once their mode is on
        modes,
        margins,
        f"\x1b]2;{title}\x1b\\".encode() if title else b"",
        shape,
        place,
        rest,
    ]


def _place(terminal: Terminal) -> bytes:
    """Where the cursor is. One that waits to wrap is put there by printing its cell again, link and all."""
    place = _state_after(terminal, ("cursor",))
    found = _PLACE.match(place)
    if found is None or found.end() == len(place):
        return place
    address = native.link_at(terminal.handle, terminal.cols - 1, terminal.cursor.row)
    if not address:
        return place
    return b"".join((found[0], b"\x1b]8;;", address, b"\x1b\\", place[found.end() :], b"\x1b]8;;\x1b\\"))


def _default_tabs(cols: int) -> bytes:
    return b"\x1b[3g" + b"".join(b"\x1b[%dG\x1bH" % (col + 1) for col in range(8, cols, 8)) + b"\x1b[H"


def _relative(place: bytes, margins: bytes) -> bytes:
    """A cursor position as origin mode counts it: from the margins."""
    top = left = 1
    for start, _end, kind in _MARGINS.findall(margins):
        if kind == b"r":
            top = int(start)
        else:
            left = int(start)
    return _PLACE.sub(lambda found: b"\x1b[%d;%dH" % (int(found[1]) - top + 1, int(found[2]) - left + 1), place)


def _cursor_shape(terminal: Terminal) -> bytes:
    shape = find_view(terminal.handle).cursor_shape
    blinking = native.get_mode(terminal.handle, 12)
    number = {"block": 1, "underline": 3, "bar": 5}.get(("bar", "block", "underline", "block")[shape], 1)
    if number == 1 and not blinking:
        return b""
    return b"\x1b[%d q" % (number + (not blinking))
