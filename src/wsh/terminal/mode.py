"""What the program asked of its terminal, read from the library."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from wsh.terminal.engine import native
from wsh.terminal.engine.native import Native, lib
from wsh.terminal.engine.view import find_view
from wsh.terminal.screen import MouseMode, TerminalModes

_MOUSE_MODES: tuple[tuple[int, MouseMode], ...] = (
    (1003, "any"),
    (1002, "button"),
    (1000, "normal"),
    (9, "x10"),
)
_MOUSE_FORMATS: tuple[tuple[int, Literal["utf8", "sgr", "urxvt", "sgr_pixels"]], ...] = (
    (1016, "sgr_pixels"),
    (1006, "sgr"),
    (1015, "urxvt"),
    (1005, "utf8"),
)
_SHAPES: tuple[Literal["bar", "block", "underline", "block_hollow"], ...] = (
    "bar",
    "block",
    "underline",
    "block_hollow",
)


_NUMBERS = (2004, 1, 66, 1004, 2026, 1007, 5, 12, 25, *dict(_MOUSE_MODES), *dict(_MOUSE_FORMATS))
_SET = native.ModeSet(_NUMBERS)


def read_modes(handle: Native) -> TerminalModes:
    kitty_keyboard = native.get_u8(handle, lib.GHOSTTY_TERMINAL_DATA_KITTY_KEYBOARD_FLAGS)
    return _make_modes(_SET.read(handle), kitty_keyboard, find_view(handle).cursor_shape)


@lru_cache(maxsize=256)
def _make_modes(values: bytes, kitty_keyboard: int, shape: int) -> TerminalModes:
    is_set = dict(zip(_NUMBERS, map(bool, values), strict=True)).__getitem__
    mouse: MouseMode = next((name for number, name in _MOUSE_MODES if is_set(number)), "none")
    return TerminalModes(
        bracketed_paste=is_set(2004),
        application_cursor_keys=is_set(1),
        application_keypad=is_set(66),
        mouse=mouse != "none",
        mouse_mode=mouse,
        mouse_format=next((name for number, name in _MOUSE_FORMATS if is_set(number)), "x10"),
        focus_events=is_set(1004),
        synchronized_output=is_set(2026),
        alternate_scroll=is_set(1007),
        reverse_colors=is_set(5),
        kitty_keyboard=kitty_keyboard,
        cursor_shape=_SHAPES[shape] if 0 <= shape < len(_SHAPES) else "block",
        cursor_blinking=is_set(12),
        cursor_visible=is_set(25),
    )
