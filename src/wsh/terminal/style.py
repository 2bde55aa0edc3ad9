"""Rows of VT bytes to spans.

The library prints a row as text with complete style runs: each run begins with a reset, so a run by itself says the
whole style and can be looked up in a table. Hyperlinks are OSC 8, put in by `row.py`.
"""

from __future__ import annotations

import re

from wsh.terminal.screen import Span, StyledLine
from wsh.wire.json.object import JsonObject

_STYLED = re.compile(r"((?:\x1b\[[^m]*m)*)([^\x1b]+)")
_RUN = re.compile(r"((?:\x1b\[[0-9;:]*m)+)")
_LINK = re.compile(r"\x1b\]8;[^;\x1b]*;([^\x1b]*)\x1b\\")
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
_PLAIN: JsonObject = {}
_MAX_STYLES = 8192

_by_run: dict[str, JsonObject] = {}
_exact: dict[str, JsonObject] = {"": _PLAIN}
"""The runs that say no more than their spans tell; two of them side by side are never the same."""
_UNTOLD = re.compile(r"\x1b\[(?:8|53|58[;:][0-9;:]*|4:[2-9])m")
_by_content: dict[str, JsonObject] = {}


def style_of(run: str) -> JsonObject:
    """The attributes that a run of SGR sequences leaves set, starting from none. Equal styles are one object."""
    style = _by_run.get(run)
    if style is None:
        if len(_by_run) >= _MAX_STYLES:
            # a program that invents colours must not fill memory; live spans keep theirs
            _by_run.clear()
            _by_content.clear()
            _exact.clear()
            _exact[""] = _PLAIN
        style = _read_run(run)
        style = _by_content.setdefault(repr(style), style) if style else _PLAIN
        _by_run[run] = style
        if not _UNTOLD.search(run):
            _exact[run] = style
    return style


def _read_run(run: str) -> JsonObject:
    found: JsonObject = {}
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
                colour, index = _read_colour(parts, index)
                if colour is not None and part != "58":
                    found["fg" if part == "38" else "bg"] = colour
            elif len(part) == 2 and part[0] in "34" and part[1] in "01234567":
                found["fg" if part[0] == "3" else "bg"] = {"indexed": int(part[1])}
            elif len(part) == 2 and part[0] == "9" and part[1] in "01234567":
                found["fg"] = {"indexed": int(part[1]) + 8}
            elif len(part) == 3 and part[:2] == "10" and part[2] in "01234567":
                found["bg"] = {"indexed": int(part[2]) + 8}
    return {name: found[name] for name in _ORDER if name in found}


def _read_colour(parts: list[str], index: int) -> tuple[JsonObject | None, int]:
    kind = parts[index] if index < len(parts) else ""
    if kind == "5" and index + 1 < len(parts):
        return {"indexed": int(parts[index + 1])}, index + 2
    if kind == "2" and index + 3 < len(parts):
        red, green, blue = (int(value) for value in parts[index + 1 : index + 4])
        return {"rgb": {"r": red, "g": green, "b": blue}}, index + 4
    return None, index


def parse_row(row: bytes) -> StyledLine:
    """One row as spans; trailing blanks without style are no content."""
    if not row:
        return []
    text = row.decode("utf-8", "replace")
    if "\x1b" not in text:
        text = text.rstrip(" ")
        return [{"text": text}] if text else []
    if "\x1b]" in text:
        spans = _linked_spans(text)
    else:
        known = _exact
        while text.endswith("\x1b[0m"):
            text = text[:-4]
        try:
            spans = [{"text": piece, **known[run]} for run, piece in _STYLED.findall(text)]
        except KeyError:
            spans = _spans(text, _PLAIN)[0]
    while spans and len(spans[-1]) == 1:
        kept = spans[-1]["text"].rstrip(" ")
        if kept:
            spans[-1]["text"] = kept
            break
        spans.pop()
    return spans


def _spans(text: str, style: JsonObject) -> tuple[StyledLine, JsonObject]:
    parts = iter(_RUN.split(text))
    spans: StyledLine = []
    last: JsonObject | None = None
    piece = next(parts)
    if piece:
        spans.append({"text": piece, **style})
        last = style
    known = _by_run
    for run, piece in zip(parts, parts, strict=True):
        style = known.get(run) or style_of(run)
        if piece:
            if style is last:  # they differ in something that spans do not tell
                spans[-1]["text"] += piece
            else:
                spans.append({"text": piece, **style})
                last = style
    return spans, style


def _linked_spans(text: str) -> StyledLine:
    spans: StyledLine = []
    style = _PLAIN
    link = ""
    for index, part in enumerate(_LINK.split(text)):
        if index & 1:
            link = part
            continue
        if not part:
            continue
        found, style = _spans(part, style)
        if link:
            for span in found:
                span["link"] = link
        if found and spans and _differ_in_text_only(spans[-1], found[0]):
            spans[-1]["text"] += found.pop(0)["text"]
        spans += found
    return spans


def _differ_in_text_only(one: Span, other: Span) -> bool:
    return {**one, "text": ""} == {**other, "text": ""}
