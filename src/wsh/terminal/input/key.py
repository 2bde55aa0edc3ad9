"""Names of keys to the bytes a program expects, and back.

`encode_key("ctrl+c", terminal)` goes through the library's encoder, which knows application cursor mode and the kitty
keyboard flags of that terminal. `parse_keys` turns captured input into names; it knows what keyboards send in the
legacy, modified and kitty forms, and passes anything else on as text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wsh.terminal.engine.native import NULL, Native, check, ffi, lib
from wsh.wire.bracketed_paste import WHOLE_PATTERN, starts_paste
from wsh.wire.error import InvalidKey

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

SHIFT, CTRL, ALT, SUPER = 1, 2, 4, 8
_MODIFIERS = {
    "shift": SHIFT,
    "s": SHIFT,
    "ctrl": CTRL,
    "control": CTRL,
    "c": CTRL,
    "alt": ALT,
    "option": ALT,
    "meta": ALT,
    "m": ALT,
    "super": SUPER,
    "cmd": SUPER,
    "command": SUPER,
    "win": SUPER,
}
_ORDER = ((CTRL, "ctrl"), (ALT, "alt"), (SHIFT, "shift"), (SUPER, "super"))

_NAMED: dict[str, tuple[str, str]] = {
    # name: (GHOSTTY_KEY_…, text it types)
    "enter": ("ENTER", "\r"),
    "tab": ("TAB", "\t"),
    "space": ("SPACE", " "),
    "backspace": ("BACKSPACE", "\x7f"),
    "escape": ("ESCAPE", "\x1b"),
    "delete": ("DELETE", ""),
    "insert": ("INSERT", ""),
    "home": ("HOME", ""),
    "end": ("END", ""),
    "pageup": ("PAGE_UP", ""),
    "pagedown": ("PAGE_DOWN", ""),
    "up": ("ARROW_UP", ""),
    "down": ("ARROW_DOWN", ""),
    "left": ("ARROW_LEFT", ""),
    "right": ("ARROW_RIGHT", ""),
    "menu": ("CONTEXT_MENU", ""),
    "printscreen": ("PRINT_SCREEN", ""),
    "pause": ("PAUSE", ""),
    "kpenter": ("NUMPAD_ENTER", "\r"),
    **{f"kp{digit}": (f"NUMPAD_{digit}", str(digit)) for digit in range(10)},
    **{f"f{number}": (f"F{number}", "") for number in range(1, 25)},
}
_ALIASES = {
    "return": "enter",
    "cr": "enter",
    "esc": "escape",
    "del": "delete",
    "ins": "insert",
    "bs": "backspace",
    "pgup": "pageup",
    "prior": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "next": "pagedown",
    "arrowup": "up",
    "arrowdown": "down",
    "arrowleft": "left",
    "arrowright": "right",
    "uparrow": "up",
    "downarrow": "down",
    "leftarrow": "left",
    "rightarrow": "right",
    "spacebar": "space",
}
_CHARACTER_NAMES = {
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "period": ".",
    "dot": ".",
    "slash": "/",
    "backslash": "\\",
    "semicolon": ";",
    "colon": ":",
    "quote": "'",
    "doublequote": '"',
    "backquote": "`",
    "backtick": "`",
    "equal": "=",
    "equals": "=",
    "underscore": "_",
    "tilde": "~",
    "at": "@",
    "hash": "#",
    "pipe": "|",
    "bracketleft": "[",
    "bracketright": "]",
}
_SHIFTED = dict(zip('~!@#$%^&*()_+{}|:"<>?', "`1234567890-=[]\\;',./", strict=True))
_PHYSICAL = {
    "`": "BACKQUOTE",
    "\\": "BACKSLASH",
    "[": "BRACKET_LEFT",
    "]": "BRACKET_RIGHT",
    ",": "COMMA",
    "=": "EQUAL",
    "-": "MINUS",
    ".": "PERIOD",
    "'": "QUOTE",
    ";": "SEMICOLON",
    "/": "SLASH",
    " ": "SPACE",
    **{str(digit): f"DIGIT_{digit}" for digit in range(10)},
    **{chr(code): chr(code).upper() for code in range(ord("a"), ord("z") + 1)},
}

_encoder: Native = ffi.new("GhosttyKeyEncoder*")
_event: Native = ffi.new("GhosttyKeyEvent*")
check(lib.ghostty_key_encoder_new(NULL, _encoder), "key_encoder_new")
check(lib.ghostty_key_event_new(NULL, _event), "key_event_new")
_buffer = ffi.new("char[]", 256)
_length = ffi.new("size_t*")
_REPORT_EVENTS = 2


def split_name(name: str) -> tuple[int, str]:
    """Modifiers and key of a name such as `ctrl+shift+left`, `C-x` or `^C`; InvalidKey if it is none."""
    rest = name
    modifiers = 0
    if len(rest) == 2 and rest[0] == "^":
        return CTRL, rest[1].lower()
    while len(rest) > 1:
        found = re.match(r"([A-Za-z]+)([+-])(?=.)", rest)
        if found is None:
            break
        modifier = _MODIFIERS.get(found[1].lower())
        if modifier is None or (len(found[1]) == 1 and (found[2] != "-" or found[1] not in "CMS")):
            break
        modifiers |= modifier
        rest = rest[found.end() :]
    if len(rest) == 1:
        return modifiers, rest
    key = rest.lower().replace("_", "").replace(" ", "")
    key = _ALIASES.get(key, key)
    if key == "backtab":
        return modifiers | SHIFT, "tab"
    if key in _CHARACTER_NAMES:
        return modifiers, _CHARACTER_NAMES[key]
    if key in _NAMED:
        return modifiers, key
    if _is_one_character(rest):
        return modifiers, rest
    raise InvalidKey(name)


def _is_one_character(text: str) -> bool:
    """One character as a person sees it, with its marks and joined parts."""
    if not text or len(text) > 16 or text.isascii():
        return False
    points = ffi.new("uint32_t[]", [ord(character) for character in text])
    width = ffi.new("uint8_t*")
    return int(lib.ghostty_unicode_grapheme_width(points, len(text), width)) == len(text)


def encode_key(name: str, terminal: Terminal | None = None) -> bytes:
    """The bytes that a press of this key sends to the program in `terminal` (or to a plain one)."""
    if not name:
        raise InvalidKey(name)
    modifiers, key = split_name(name)
    encoder, event = _encoder[0], _event[0]
    _configure(terminal)
    consumed = 0
    if key in _NAMED and len(key) > 1:
        constant, text = _NAMED[key]
        unshifted = ord(text) if text and text.isprintable() else 0
        text = text if text.isprintable() else ""
    else:
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in key):
            raise InvalidKey(name)
        if modifiers & SHIFT and not modifiers & (CTRL | SUPER):
            key = key.upper() if len(key.upper()) == 1 else key
        elif modifiers & CTRL and len(key) == 1 and key.isascii() and key.isalpha():
            key = key.lower()
        base = _SHIFTED.get(key, key.lower() if len(key.lower()) == 1 else key)
        if base != key:
            modifiers |= SHIFT
            consumed = SHIFT
        text = key
        unshifted = ord(base) if len(base) == 1 else 0
        constant = _PHYSICAL.get(base, "UNIDENTIFIED")
    raw = text.encode()
    holder = ffi.from_buffer(raw)
    lib.ghostty_key_event_set_key(event, getattr(lib, f"GHOSTTY_KEY_{constant}"))
    lib.ghostty_key_event_set_mods(event, modifiers)
    lib.ghostty_key_event_set_consumed_mods(event, consumed)
    lib.ghostty_key_event_set_utf8(event, holder, len(raw))
    lib.ghostty_key_event_set_unshifted_codepoint(event, unshifted)
    lib.ghostty_key_event_set_composing(event, False)
    made = _encode(encoder, event, lib.GHOSTTY_KEY_ACTION_PRESS)
    if terminal is not None and terminal.modes.kitty_keyboard & _REPORT_EVENTS:
        made += _encode(encoder, event, lib.GHOSTTY_KEY_ACTION_RELEASE)
    lib.ghostty_key_event_set_utf8(event, NULL, 0)
    if (modifiers & SUPER or _CSI_U.fullmatch(made)) and not _understands_csi_u(terminal):
        made = _legacy(modifiers, key, text)
    if not made:
        raise InvalidKey(name)
    return made


_CSI_U = re.compile(rb"\x1b\[(?:[0-9:;]+u|27;[0-9]+;[0-9]+~)")
_C0 = {"[": 0x1B, "\\": 0x1C, "]": 0x1D, "^": 0x1E, "_": 0x1F, "/": 0x1F, "?": 0x7F, " ": 0, "@": 0, "2": 0}


def _understands_csi_u(terminal: Terminal | None) -> bool:
    return terminal is not None and (terminal.modes.kitty_keyboard != 0 or terminal.modify_other_keys)


def _legacy(modifiers: int, key: str, text: str) -> bytes:
    """What an old terminal sends where the library would send a sequence that the program did not ask for."""
    if modifiers & SUPER:
        return b""
    character = text or {"enter": "\r", "tab": "\t", "backspace": "\x7f", "escape": "\x1b"}.get(key, "")
    raw = character.encode()
    if modifiers & CTRL and len(key) == 1:
        if key in _C0:
            raw = bytes([_C0[key]])
        elif key.isascii() and key.isalpha():
            raw = bytes([ord(key.upper()) - 0x40])
    return (b"\x1b" if modifiers & ALT else b"") + raw


def _encode(encoder: Native, event: Native, action: int) -> bytes:
    lib.ghostty_key_event_set_action(event, action)
    check(lib.ghostty_key_encoder_encode(encoder, event, _buffer, len(_buffer), _length), "key_encode")
    return bytes(ffi.buffer(_buffer, _length[0]))


_plain: list[Native] = []


def _configure(terminal: Terminal | None) -> None:
    if terminal is None:
        from wsh.terminal.terminal import Terminal as Plain

        if not _plain:
            _plain.append(Plain(1, 2))
        terminal = _plain[0]
        assert terminal is not None
    lib.ghostty_key_encoder_setopt_from_terminal(_encoder[0], terminal.handle)


def encode_keys(names: str, terminal: Terminal | None = None) -> bytes:
    """Several keys, separated by spaces: `ctrl+x ctrl+s`."""
    if not names.strip():
        raise InvalidKey(names)
    return b"".join(encode_key(name, terminal) for name in names.split())


# captured input back to names

_CSI_FINAL = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "P": "f1",
    "Q": "f2",
    "S": "f4",
}
_SS3_FINAL = {**_CSI_FINAL, "R": "f3", "M": "kpenter"}
_CSI_NUMBER = {
    1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end",
    11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11",
    24: "f12", 25: "f13", 26: "f14", 28: "f15", 29: "f16", 31: "f17", 32: "f18", 33: "f19", 34: "f20",
}  # fmt: skip
_KITTY_CODES = {
    9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57361: "printscreen", 57362: "pause",
    57363: "menu", 57414: "kpenter", **{57376 + index: f"f{13 + index}" for index in range(12)},
    **{57399 + digit: f"kp{digit}" for digit in range(10)},
}  # fmt: skip
_SEQUENCE = re.compile(
    rb"\x1b\[<[0-9;]*[Mm]"  # a mouse report
    rb"|" + WHOLE_PATTERN + rb"|\x1b?\x1b\[[0-?]*[ -/]*[@-~]"
    rb"|\x1b?\x1bO[@-~]"
    rb"|\x1b?[\x00-\x1a\x1c-\x1f\x7f]"
    rb"|\x1b?(?:[ -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})"
    rb"|\x1b"
    rb"|.",
    re.DOTALL,
)
_CONTROL_NAMES = {0x00: "ctrl+space", 0x09: "tab", 0x0D: "enter", 0x1B: "escape", 0x7F: "backspace"}
_CONTROL_MARKS = {0x1C: "\\", 0x1D: "]", 0x1E: "^", 0x1F: "_"}


def parse_keys(raw: bytes) -> list[tuple[str, bytes]]:
    """Input as (name, bytes) pairs, in order and without loss: the bytes joined are the input.

    Pastes are named `paste`, mouse reports `mouse`, what no key sends `unknown`.
    """
    return [(_name_of(found[0]), found[0]) for found in _SEQUENCE.finditer(raw)]


def _name_of(sequence: bytes) -> str:
    if sequence.startswith(b"\x1b[<") or sequence[:3] == b"\x1b[M":
        return "mouse"
    if starts_paste(sequence):
        return "paste"
    if sequence in (b"\x1b[I", b"\x1b[O"):
        return "focus" if sequence.endswith(b"I") else "blur"
    if len(sequence) > 1 and sequence[0] == 0x1B and (sequence[1] not in b"[O" or len(sequence) == 2):
        return _with(ALT, _name_of(sequence[1:]))
    if sequence.startswith(b"\x1bO") and len(sequence) == 3:
        return _SS3_FINAL.get(chr(sequence[2]), "unknown")
    if sequence.startswith(b"\x1b["):
        return _csi_name(sequence[2:].decode("ascii", "replace"))
    if len(sequence) == 1:
        code = sequence[0]
        if code in _CONTROL_NAMES:
            return _CONTROL_NAMES[code]
        if code < 0x1B:
            return f"ctrl+{chr(code + 0x60)}"
        if code in _CONTROL_MARKS:
            return f"ctrl+{_CONTROL_MARKS[code]}"
        if code >= 0x80:
            return "unknown"
    text = sequence.decode("utf-8", "replace")
    return "space" if text == " " else text


def _csi_name(body: str) -> str:
    found = re.fullmatch(r"([0-9;:]*)([A-Za-z~])", body)
    if found is None:
        return "unknown"
    fields = found[1].split(";") if found[1] else []
    final = found[2]
    modifiers = 0
    if len(fields) > 1:
        value, _, kind = fields[1].partition(":")
        bits = int(value or 1) - 1
        modifiers = bits & 1 | (CTRL if bits & 4 else 0) | (ALT if bits & 2 else 0) | (SUPER if bits & 8 else 0)
        if kind == "3":
            return "release"
    code = int(fields[0].partition(":")[0] or 0) if fields else 0
    if final == "Z":
        return _with(modifiers | SHIFT, "tab")
    if final == "u":
        name = _KITTY_CODES.get(code) or (chr(code) if 0x20 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "")
    elif final == "~":
        if code == 27 and len(fields) == 3:  # xterm's modifyOtherKeys
            name = _KITTY_CODES.get(int(fields[2] or 0)) or chr(int(fields[2] or 0x20) % 0x110000)
        else:
            name = _CSI_NUMBER.get(code, "")
    else:
        name = _CSI_FINAL.get(final, "")
    return _with(modifiers, name) if name else "unknown"


def _with(modifiers: int, name: str) -> str:
    if name == "unknown":
        return name
    already, key = 0, name
    while True:
        head, plus, rest = key.partition("+")
        if not plus or not rest or head not in ("ctrl", "alt", "shift", "super"):
            break
        already |= _MODIFIERS[head]
        key = rest
    modifiers |= already
    return "+".join([text for bit, text in _ORDER if modifiers & bit] + [key])
