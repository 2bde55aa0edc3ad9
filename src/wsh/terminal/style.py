"""Rows of VT bytes to spans.

The library prints a row as text with complete style runs: each run begins with a reset, so a run by itself says the
whole style and can be looked up in a table. Hyperlinks are OSC 8, put in by `row.py`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from wsh.terminal.screen import Span, StyledLine

_TOKEN = re.compile(r"((?:\x1b\[[0-9;:]*m)+|\x1b\]8;[^\x1b]*\x1b\\)")
_PARAMETERS = re.compile(r"\x1b\[([0-9;:]*)m")
_FLAGS = {
    "1": "bold",
    "2": "faint",
    "3": "italic",
    "4": "underline",
    "5": "blink",
    "7": "inverse",
    "9": "strikethrough",
    "21": "underline",
}
_ORDER = ("fg", "bg", "bold", "faint", "italic", "underline", "strikethrough", "blink", "inverse")


@lru_cache(maxsize=4096)
def style_of(run: str) -> dict[str, Any]:
    """The attributes that a run of SGR sequences leaves set, starting from none."""
    found: dict[str, Any] = {}
    for parameters in _PARAMETERS.findall(run):
        parts = parameters.split(";")
        index = 0
        while index < len(parts):
            part = parts[index]
            index += 1
            if part in ("", "0"):
                found.clear()
            elif part in _FLAGS:
                found[_FLAGS[part]] = True
            elif part.startswith("4:"):
                if part != "4:0":
                    found["underline"] = True
            elif part in ("38", "48", "58"):
                kind = parts[index] if index < len(parts) else ""
                colour: dict[str, Any] | None = None
                if kind == "5" and index + 1 < len(parts):
                    colour = {"indexed": int(parts[index + 1])}
                    index += 2
                elif kind == "2" and index + 3 < len(parts):
                    red, green, blue = (int(value) for value in parts[index + 1 : index + 4])
                    colour = {"rgb": {"r": red, "g": green, "b": blue}}
                    index += 4
                if colour is not None and part != "58":
                    found["fg" if part == "38" else "bg"] = colour
            elif len(part) == 2 and part[0] in "34" and part[1] in "01234567":
                found["fg" if part[0] == "3" else "bg"] = {"indexed": int(part[1])}
            elif len(part) == 2 and part[0] == "9" and part[1] in "01234567":
                found["fg"] = {"indexed": int(part[1]) + 8}
            elif len(part) == 3 and part[:2] == "10" and part[2] in "01234567":
                found["bg"] = {"indexed": int(part[2]) + 8}
    return {name: found[name] for name in _ORDER if name in found}


def parse_row(row: bytes) -> StyledLine:
    """One row as spans; trailing blanks without style are no content."""
    if not row:
        return []
    text = row.decode("utf-8", "replace")
    if "\x1b" not in text:
        text = text.rstrip(" ")
        return [{"text": text}] if text else []
    spans: StyledLine = []
    style: dict[str, Any] = {}
    link = ""
    for index, part in enumerate(_TOKEN.split(text)):
        if not part:
            continue
        if not index & 1:
            span: Span = {"text": part, **style}
            if link:
                span["link"] = link
            if spans and len(spans[-1]) == len(span) and _same_style(spans[-1], span):
                spans[-1]["text"] += part
            else:
                spans.append(span)
        elif part[1] == "[":
            style = style_of(part)
        else:
            link = part[4:-2].partition(";")[2]
    while spans and len(spans[-1]) == 1:
        kept = spans[-1]["text"].rstrip(" ")
        if kept:
            spans[-1]["text"] = kept
            break
        spans.pop()
    return spans


def _same_style(one: Span, other: Span) -> bool:
    return all(name == "text" or one.get(name) == value for name, value in other.items())
