"""What a terminal sends for one key, by name: `d`, `ctrl+c`, `alt+v`, `pageup`; also the mouse, pasted text and reports.

Knows the legacy, modified and kitty forms. A key release or a lone modifier has no name and is ignored.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wsh.wire.bracketed_paste import PASTE_BEGIN, read_pasted, starts_paste

_CHARACTER = rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|."
_KEY = re.compile(
    rb"\x1b\[<(?P<button>\d+);(?P<col>\d+);(?P<row>\d+)(?P<how>[Mm])"
    rb"|\x1b\[M(?P<x10>...)"
    rb"|\x1b\[(?P<numbers>[0-9:;?<=>]*)(?P<final>[A-Za-z~])"
    rb"|\x1bO(?P<ss3>[A-Za-z])"
    rb"|(?P<alt>\x1b)?(?P<character>" + _CHARACTER + rb")",
    re.DOTALL,
)
_LETTERS = {
    b"A": "up",
    b"B": "down",
    b"C": "right",
    b"D": "left",
    b"F": "end",
    b"H": "home",
    b"P": "f1",
    b"Q": "f2",
    b"R": "f3",
    b"S": "f4",
    b"M": "enter",
}
_TILDE = {1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end"}
_TILDE |= {11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10"}
_TILDE |= {23: "f11", 24: "f12"}
_NAMED = {9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57414: "enter"}
_KEYPAD = {57417: "left", 57418: "right", 57419: "up", 57420: "down", 57421: "pageup", 57422: "pagedown"}
_KEYPAD |= {57423: "home", 57424: "end", 57425: "insert", 57426: "delete"}
_CONTROLS = {
    0: "ctrl+space",
    9: "tab",
    13: "enter",
    27: "escape",
    28: "ctrl+\\",
    29: "ctrl+]",
    30: "ctrl+^",
    31: "ctrl+_",
}
_SHIFT, _ALT, _CTRL = 1, 2, 4
_PRIVATE_USE = range(57344, 63744)
_WHEEL = {64: "wheel_up", 65: "wheel_down"}


class Keystroke(NamedTuple):
    name: str
    """Empty for what is no key press."""
    raw: bytes
    row: int = 0
    """For the mouse, from 0."""
    col: int = 0


def read_keystroke(data: bytes, at: int = 0) -> Keystroke:
    """The keystroke at `at`, which must lie before the end. Pasted text is one, named `paste`, as far as it has arrived."""
    if starts_paste(data, at):
        return Keystroke("paste", data[at : read_pasted(data, at + len(PASTE_BEGIN)).end])
    found = _KEY.match(data, at)
    assert found is not None, "one character always matches"
    raw = found[0]
    if found["button"]:
        return _read_mouse(int(found["button"]), int(found["row"]), int(found["col"]), found["how"] == b"M", raw)
    if found["x10"]:
        button, col, row = (value - 32 for value in found["x10"])
        return _read_mouse(button, row, col, button & 3 != 3, raw)
    if found["final"]:
        return Keystroke(_name_sequence(found["numbers"], found["final"]), raw)
    if found["ss3"]:
        return Keystroke(_LETTERS.get(found["ss3"], ""), raw)
    name = _name_character(found["character"])
    if found["alt"]:
        name = f"alt+{name}" if not name.startswith("ctrl+") else "ctrl+alt+" + name.removeprefix("ctrl+")
    return Keystroke(name, raw)


def read_keystrokes(data: bytes) -> list[Keystroke]:
    found: list[Keystroke] = []
    at = 0
    while at < len(data):
        found.append(read_keystroke(data, at))
        at += len(found[-1].raw)
    return found


def _name_character(raw: bytes) -> str:
    code = raw[0]
    if code in _CONTROLS:
        return _CONTROLS[code]
    if code < 27:
        return f"ctrl+{chr(code + 96)}"
    if code == 127:
        return "backspace"
    return "space" if code == 32 else raw.decode("utf-8", "replace")


def _name_sequence(numbers: bytes, final: bytes) -> str:
    if numbers[:1] in (b"?", b"<", b"=", b">"):
        return ""  # an answer of the terminal
    fields = [part.split(b":") for part in numbers.split(b";")]

    def number(field: int, part: int = 0) -> int:
        try:
            return int(fields[field][part] or 0)
        except (IndexError, ValueError):
            return 0

    modifiers, event = max(0, number(1) - 1), number(1, 1)
    if event == 3:
        return ""
    if final == b"~" and number(0) == 27 and number(2):
        return _name_code(number(2), modifiers, 0, 0)
    if final == b"u":
        return _name_code(number(0), modifiers, number(0, 1), number(2))
    if final == b"Z":
        return "shift+tab"
    if final in b"IO":
        return ""
    name = _TILDE.get(number(0), "") if final == b"~" else _LETTERS.get(final, "")
    return _with_modifiers(name, modifiers) if name else ""


def _name_code(code: int, modifiers: int, shifted: int, text: int) -> str:
    if code in _NAMED or code in _KEYPAD:
        return _with_modifiers(_NAMED.get(code) or _KEYPAD[code], modifiers)
    if code in _PRIVATE_USE or not 32 < code < 0x110000:
        return ""
    character = chr(code)
    if text and not modifiers & (_ALT | _CTRL):
        return chr(text) if text < 0x110000 else ""
    if modifiers & _SHIFT:
        character = chr(shifted) if 32 < shifted < 0x110000 else character.upper()
    return _with_modifiers(character, modifiers & ~_SHIFT)


def _with_modifiers(name: str, modifiers: int) -> str:
    parts = [word for bit, word in ((_CTRL, "ctrl"), (_ALT, "alt"), (_SHIFT, "shift")) if modifiers & bit]
    return "+".join([*parts, name])


def _read_mouse(button: int, row: int, col: int, pressed: bool, raw: bytes) -> Keystroke:
    plain = button & ~0b11100  # without shift, alt and ctrl
    if plain in _WHEEL:
        name = _WHEEL[plain]
    elif plain & 3 or plain >= 64:
        name = ""
    elif plain & 32:
        name = "mouse_drag"
    else:
        name = "mouse_press" if pressed else "mouse_release"
    return Keystroke(name, raw, row - 1, col - 1)
