"""What a person's keys mean before they reach the program: the toggle of capture, detaching, the mouse's place.

Stateful per viewer: `Ctrl+\\` alone toggles capture, twice within half a second detaches. It arrives as one byte or, where the program
asked for the kitty protocol, as an escape sequence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Action: TypeAlias = Literal["toggle", "detach"]
DOUBLE_S = 0.5

_TOGGLE = re.compile(rb"\x1c|\x1b\[92;5(?::[12])?u|\x1b\[27;5;92~")
_TOGGLE_RELEASE = re.compile(rb"\x1b\[92;5:3u")
_SGR_MOUSE = re.compile(rb"\x1b\[<(\d+);(\d+);(\d+)([Mm])")
_X10_MOUSE = re.compile(rb"\x1b\[M([\x20-\xff])([\x21-\xff])([\x21-\xff])", re.DOTALL)


@dataclass(frozen=True)
class Area:
    """Where the program's screen lies in the viewer's: a mouse report is moved by this, or dropped outside."""

    first_row: int
    first_col: int
    rows: int
    cols: int


class Keyboard:
    def __init__(self) -> None:
        self._last_toggle = float("-inf")

    def split(self, data: bytes, now: float) -> Iterator[bytes | Action]:
        """Input in pieces: bytes for the program, and what the person asked of us."""
        position = 0
        data = _TOGGLE_RELEASE.sub(b"", data)
        for found in _TOGGLE.finditer(data):
            if found.start() > position:
                yield data[position : found.start()]
            position = found.end()
            if now - self._last_toggle <= DOUBLE_S:
                self._last_toggle = float("-inf")
                yield "detach"
            else:
                self._last_toggle = now
                yield "toggle"
        if position < len(data):
            yield data[position:]


def move_mouse(data: bytes, area: Area) -> bytes:
    """Mouse reports in `data` as the program would see them; those outside of its screen are left out."""
    if b"\x1b[<" in data:
        data = _SGR_MOUSE.sub(lambda m: _move_sgr(m, area), data)
    if b"\x1b[M" in data:
        data = _X10_MOUSE.sub(lambda m: _move_x10(m, area), data)
    return data


def _move_sgr(found: re.Match[bytes], area: Area) -> bytes:
    col, row = int(found[2]) - area.first_col, int(found[3]) - area.first_row
    inside = 1 <= col <= area.cols and 1 <= row <= area.rows
    return b"\x1b[<%s;%d;%d%s" % (found[1], col, row, found[4]) if inside else b""


def _move_x10(found: re.Match[bytes], area: Area) -> bytes:
    col, row = found[2][0] - 32 - area.first_col, found[3][0] - 32 - area.first_row
    inside = 1 <= col <= min(area.cols, 223) and 1 <= row <= min(area.rows, 223)
    return b"\x1b[M" + found[1] + bytes((col + 32, row + 32)) if inside else b""
