"""The whole state as VT bytes, for an emulator that starts fresh.

Order matters: text first under default modes, then what changes how text is taken (margins, modes), the cursor last.
While the alternate screen shows, the normal one under it is out of the library's reach; a copy of the terminal is made
and switched back to read it. Left out on purpose: synchronized output and in-band size reports (they would freeze the
viewer or make it answer), colours of the palette, and a saved cursor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wsh.terminal import native

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

_LEFT_OUT = re.compile(rb"\x1b\[\?(?:3|40|47|1047|1048|1049|2026|2048)[hl]")
_MARGINS = re.compile(rb"\x1b\[(\d+);(\d+)([rs])")
_PLACE = re.compile(rb"^\x1b\[(\d+);(\d+)H")
_TITLE_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
ORIGIN = b"\x1b[?6h"


def make_replay(terminal: Terminal, scrollback_lines: int | None) -> bytes:
    parts = [b"\x1bc"]
    if terminal.alt:
        parts += _under_alternate(terminal, scrollback_lines)
        parts.append(b"\x1b[?1049h\x1b[0m\x1b[H")
        parts += _text(terminal, 0)
    else:
        parts += _text(terminal, scrollback_lines)
    parts += _state(terminal)
    return b"".join(parts)


def _under_alternate(terminal: Terminal, scrollback_lines: int | None) -> list[bytes]:
    with type(terminal).restore(terminal.snapshot(), terminal.limits) as copy:
        copy.feed(b"\x1b\\\x1b[?1047l")
        if copy.alt:
            copy.feed(b"\x1b[?47l")
        place = _state_after(copy, ("cursor",))
        return [*_text(copy, scrollback_lines), place]


def _text(terminal: Terminal, scrollback_lines: int | None) -> list[bytes]:
    """The lines; one that wraps is left to wrap, so that the other side can reflow it too."""
    numbers = terminal._numbers
    base = 0 if numbers.alt else numbers.base
    first = terminal.first_line
    if scrollback_lines is not None:
        first = max(first, base - max(0, scrollback_lines))
    last = base + terminal.rows
    if first == base:
        last = max(terminal.total_lines, base + _last_painted(terminal))
    rows = terminal.vt_lines_between(first, last)
    shift = 0 if numbers.alt else numbers.base - numbers.history
    parts: list[bytes] = []
    final = len(rows) - 1
    for index, row in enumerate(rows):
        parts.append(row)
        if index < final:
            wraps = (
                len(row) * 2 >= terminal.cols
                and native.row_flags(terminal.handle, native.SCREEN, first + index - shift)[1]
            )
            if not wraps:
                parts.append(b"\r\n")
    return parts


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
    place = _state_after(terminal, ("cursor",))
    rest = _state_after(
        terminal, ("style", "hyperlink", "protection", "kitty_keyboard", "charsets"), ("keyboard", "pwd")
    )
    if ORIGIN in modes:
        place = _relative(place, margins)
    title = _TITLE_UNSAFE.sub("", terminal.title)
    shape = _cursor_shape(terminal)
    return [
        b"\x1b[0m",
        tabs if tabs != _default_tabs(terminal.cols) else b"",
        # left and right margins are only understood once their mode is on
        modes,
        margins,
        f"\x1b]2;{title}\x1b\\".encode() if title else b"",
        shape,
        place,
        rest,
    ]


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
    shape = native.cursor_shape(terminal.handle)
    blinking = native.get_mode(terminal.handle, 12)
    number = {"block": 1, "underline": 3, "bar": 5}.get(("bar", "block", "underline", "block")[shape], 1)
    if number == 1 and not blinking:
        return b""
    return b"\x1b[%d q" % (number + (not blinking))
