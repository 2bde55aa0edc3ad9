"""A result as YAML text: block scalars where a person would write them, and safe for any characters.

Written by hand because a general emitter takes seconds for megabytes of output, on the loop. It knows texts, whole
numbers, and mappings of those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_INDENT = "  "
# What may stand in a block as it is: no control characters, no line ends but \n, no byte order mark.
_NOT_IN_BLOCK = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPED = re.compile('[\\\\"]|[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]')
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\x1b": "\\e"}


def to_yaml(fields: Mapping[str, str | int | Mapping[str, str | int | None] | None]) -> str:
    """One mapping; keys are plain words. What is deeper stands in quotes."""
    lines = []
    for key, value in fields.items():
        if value is None:
            lines.append(f"{key}: null")
        elif isinstance(value, int):
            lines.append(f"{key}: {value}")
        elif isinstance(value, Mapping):
            lines.append(f"{key}:")
            lines += [f"{_INDENT}{name}: {_plain(each)}" for name, each in value.items()]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join(line.removesuffix("\n") for line in lines) + "\n"


def _plain(value: str | int | None) -> str:
    if value is None:
        return "null"
    return _quoted(value) if isinstance(value, str) else str(value)


def _scalar(text: str) -> str:
    if "\n" not in text or not text.strip("\n \t") or _NOT_IN_BLOCK.search(text):
        return _quoted(text)
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    if ends > 1:
        # Kept line ends at the end of a block swallow the end of the document: say it in quotes.
        return _quoted(text)
    # The first line tells how deep a block is indented; one that starts with a blank needs it said.
    hint = "2" if body[0] in " \n" else ""
    chomp = "" if ends else "-"
    return f"|{hint}{chomp}\n" + "\n".join(_INDENT + line if line else "" for line in body.split("\n"))


def _quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
