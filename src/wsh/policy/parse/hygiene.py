"""Refuse text that does not look the same to a person, a parser and a shell.

Control characters, invisible or unusual spaces, direction overrides, unassigned code points and lone surrogates
(which is how invalid UTF-8 arrives) have no place in a command. Ordinary letters of any script do.
"""

from __future__ import annotations

import re
import unicodedata

MAX_COMMAND_BYTES = 64 * 1024
MAX_ARGUMENTS = 4096

_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_BAD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
# Letters and marks that show nothing.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")


def find_fault(text: str) -> str | None:
    """What is wrong with `text` as (part of) a command, or None."""
    if len(text) > MAX_COMMAND_BYTES:
        return f"it is longer than {MAX_COMMAND_BYTES} bytes"
    control = _ASCII_CONTROL.search(text)
    if control:
        name = "a NUL byte" if control[0] == "\0" else f"the control character U+{ord(control[0]):04X}"
        return f"it contains {name} at character {control.start()}"
    if text.isascii():
        return None
    checked: set[str] = set()
    for match in _NOT_ASCII.finditer(text):
        char = match[0]
        if char in checked:
            continue
        if unicodedata.category(char) in _BAD_CATEGORIES or char in _BLANK_LETTERS:
            if 0xD800 <= ord(char) <= 0xDFFF:
                return f"it is not valid UTF-8 at character {match.start()}"
            name = unicodedata.name(char, "a code point without a name")
            return f"it contains U+{ord(char):04X} ({name}) at character {match.start()}, which does not show"
        checked.add(char)
    if len(text.encode()) > MAX_COMMAND_BYTES:
        return f"it is longer than {MAX_COMMAND_BYTES} bytes"
    return None


def find_argv_fault(argv: tuple[str, ...]) -> str | None:
    if not argv or not argv[0]:
        return "it names no program"
    if len(argv) > MAX_ARGUMENTS:
        return f"it has more than {MAX_ARGUMENTS} arguments"
    if sum(map(len, argv)) > MAX_COMMAND_BYTES:
        return f"it is longer than {MAX_COMMAND_BYTES} bytes"
    for index, argument in enumerate(argv):
        fault = find_fault(argument)
        if fault:
            return f"argument {index}: {fault}"
    return None


_UNREADABLE = re.compile("[\x00\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]")


def readable(text: str) -> str:
    """`text` as far as it can be parsed at all, for a look at what it tries; it is refused whatever that shows."""
    return _UNREADABLE.sub("?", text[: MAX_COMMAND_BYTES // 8])
