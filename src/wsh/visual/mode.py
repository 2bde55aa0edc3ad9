"""What the program asked of its terminal, passed on to a viewer: only what changed, and how to undo all of it."""

from __future__ import annotations

from wsh.terminal import TerminalModes

_MOUSE = {"x10": 9, "normal": 1000, "button": 1002, "any": 1003}
_FORMAT = {"utf8": 1005, "sgr": 1006, "urxvt": 1015, "sgr_pixels": 1006}
_SHAPES = {"block": 1, "underline": 3, "bar": 5, "block_hollow": 1}


def change_modes(
    old: TerminalModes | None, new: TerminalModes, cursor_visible: bool, old_visible: bool | None
) -> bytes:
    """Bytes that bring a viewer from `old` (None: a fresh emulator) to `new`."""
    out: list[bytes] = []

    def private(number: int, on: bool) -> None:
        out.append(b"\x1b[?%d%c" % (number, b"h" if on else b"l"))

    if old is None or old.bracketed_paste != new.bracketed_paste:
        private(2004, new.bracketed_paste)
    if old is None or old.application_cursor_keys != new.application_cursor_keys:
        private(1, new.application_cursor_keys)
    if old is None or old.application_keypad != new.application_keypad:
        out.append(b"\x1b=" if new.application_keypad else b"\x1b>")
    if old is None or (old.mouse_mode, old.mouse_format) != (new.mouse_mode, new.mouse_format):
        for number in (*_MOUSE.values(), 1005, 1006, 1015):
            private(number, False)
        if new.mouse_mode in _MOUSE:
            private(_MOUSE[new.mouse_mode], True)
        if new.mouse and new.mouse_format in _FORMAT:
            private(_FORMAT[new.mouse_format], True)
    if old is None or old.focus_events != new.focus_events:
        private(1004, new.focus_events)
    if old is None or old.reverse_colors != new.reverse_colors:
        private(5, new.reverse_colors)
    if old is None and new.kitty_keyboard or old is not None and old.kitty_keyboard != new.kitty_keyboard:
        out.append(b"\x1b[=%d;1u" % new.kitty_keyboard)
    if old is None or (old.cursor_shape, old.cursor_blinking) != (new.cursor_shape, new.cursor_blinking):
        number = _SHAPES[new.cursor_shape] + (0 if new.cursor_blinking else 1)
        # A steady block is also what a program has that asked for none: the viewer's own cursor stays.
        out.append(b"\x1b[%d q" % (0 if old is None and number == 2 else number))
    if old_visible is None or old_visible != cursor_visible:
        private(25, cursor_visible)
    return b"".join(out)
