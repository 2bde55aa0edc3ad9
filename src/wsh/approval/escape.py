"""Arguments made visible: nothing can hide behind spaces, control characters or marks that turn text around."""

from __future__ import annotations

import re
import unicodedata

_PLAIN = re.compile(r"[A-Za-z0-9@%_+=:,./~^-]+")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "\x00": "\\0", "\\": "\\\\", "'": "\\'"}
# letters, marks and symbols that render as nothing
_BLANK = set("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f\U00016fe4\U0001d159")
_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
"""They choose another look of the character before them, where a font has one."""


def is_hidden(char: str) -> bool:
    """Whether `char` shows as nothing, as a blank other than a space, or changes how its neighbours show."""
    if char == " ":
        return False
    category = unicodedata.category(char)
    return category in _HIDDEN or category == "Zs" or char in _BLANK or any(ord(char) in each for each in _SELECTORS)


def escape_argument(argument: str) -> str:
    """`argument` as one visible shell word: plain, in single quotes, or $'…' with every hidden character spelt out."""
    if _PLAIN.fullmatch(argument):
        return argument
    if not any(is_hidden(char) for char in argument) and "'" not in argument:
        return f"'{argument}'"
    return "$'" + "".join(_spell(char) for char in argument) + "'"


def escape_text(text: str) -> str:
    """`text` with hidden characters spelt out and everything else as it is; for reasons, titles and typed input."""
    return "".join(_spell(char) if is_hidden(char) else char for char in text)


def _spell(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if not is_hidden(char):
        return char
    point = ord(char)
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
