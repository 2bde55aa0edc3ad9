"""What a person's keys mean before they reach the program: taking captured keys back, detaching, taking over, the mouse's place.

Stateful per viewer, for viewers that have no prefix of their own: `Ctrl+\\` alone takes captured keys back, twice within half a second
detaches. Within that time it is also a prefix: `Ctrl+T` takes over or hands back, a backslash types `Ctrl+\\` itself, and where the picture is
larger than the viewer the arrows move the window on it. It arrives as one byte or, where the program asked for the kitty protocol, as an
escape sequence. What is pasted is never a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.wire.bracketed_paste import BEGIN_PATTERN, PasteInPieces

Direction: TypeAlias = Literal["up", "down", "right", "left"]
Action: TypeAlias = Literal["release", "detach", "take"] | Direction
DOUBLE_S = 0.5

# Ctrl in the kitty protocol, whatever the lock keys are; `:2` and `:3` are repeats and releases.
_CTRL = rb"(?::\d*)*;(?:5|69|133|197)"
_SPECIAL = re.compile(
    rb"(?P<release>\x1c|\x1b\[92" + _CTRL + rb"(?::1)?u|\x1b\[27;5;92~)"
    rb"|(?P<nothing>\x1b\[92" + _CTRL + rb":[23]u)"
    rb"|(?P<paste>" + BEGIN_PATTERN + rb")"
)
_LITERAL = re.compile(rb"\\|\x1b\[92(?:;1)?u")
_COMMAND = re.compile(
    rb"(?P<take>\x14|\x1b\[116" + _CTRL + rb"(?::1)?u|\x1b\[27;5;116~)"
    rb"|\x1b(?:O|\[|\[1;\d+(?::[12])?)(?P<arrow>[ABCD])"
)
_ARROWS: dict[bytes, Direction] = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}
_SGR_MOUSE = re.compile(rb"\x1b\[<(\d+);(\d+);(\d+)([Mm])")
_WHEEL_UP = 64
_X10_RELEASE = 3
_X10_MOUSE = re.compile(rb"\x1b\[M([\x20-\xff])([\x21-\xff])([\x21-\xff])", re.DOTALL)
_REPORT = re.compile(rb"\x1b\[(?:[IO]|<\d+;\d+;\d+[Mm]|M[\x20-\xff]{3})", re.DOTALL)


def is_typed(data: bytes) -> bool:
    """Whether a person typed any of it: an emulator reports the focus and the mouse by itself, also for one who only looks."""
    return bool(data if b"\x1b" not in data else _REPORT.sub(b"", data))


@dataclass(frozen=True)
class Area:
    """Where the program's screen lies in the viewer's: a mouse report is moved by this, or dropped outside."""

    first_row: int
    first_col: int
    rows: int
    cols: int


class Keyboard:
    def __init__(self) -> None:
        self._last_prefix = float("-inf")
        self._last_move = float("-inf")
        self._paste = PasteInPieces()

    def split(self, data: bytes, now: float, movable: bool = False) -> Iterator[bytes | Action]:
        """Input in pieces: bytes for the program, and what the person asked of us. `movable`: arrows can mean something."""
        position = 0
        while position < len(data):
            if self._paste.is_open:
                end = self._paste.read(data, position).end
                yield data[position:end]
                position = end
                continue
            literal = _LITERAL.match(data, position) if now - self._last_prefix <= DOUBLE_S else None
            if literal is not None:
                self._last_prefix = float("-inf")
                yield b"\x1c"
                position = literal.end()
                continue
            command = self._find_command(data, position, now, movable)
            if command is not None:
                action, position = command
                yield action
                continue
            found = _SPECIAL.search(data, position)
            if found is None:
                yield data[position:]
                return
            if found.start() > position:
                yield data[position : found.start()]
            position = found.end()
            if found["paste"]:
                self._paste.open()
                yield found[0]
            elif found["release"]:
                yield self._press(now)

    def _press(self, now: float) -> Action:
        if now - self._last_prefix <= DOUBLE_S:
            self._last_prefix = float("-inf")
            return "detach"
        self._last_prefix = now
        return "release"

    def _find_command(self, data: bytes, position: int, now: float, movable: bool) -> tuple[Action, int] | None:
        """What the keys at `position` ask of us, coming soon after the prefix, and where they end."""
        prefixed = now - self._last_prefix <= DOUBLE_S
        moving = now - self._last_move <= DOUBLE_S
        if not (prefixed or moving):
            return None
        found = _COMMAND.match(data, position)
        if found is None or not (movable if found["arrow"] else prefixed):
            return None
        self._last_prefix = float("-inf")
        if not found["arrow"]:
            return "take", found.end()
        self._last_move = now  # so that a step can be followed by more
        return _ARROWS[found["arrow"]], found.end()


def take_wheel(data: bytes) -> tuple[bytes, int]:
    """`data` without reports of the mouse, and how often the wheel was turned up in them."""
    turns = sum(int(found[1]) & ~0b11100 == _WHEEL_UP for found in _SGR_MOUSE.finditer(data))
    return _SGR_MOUSE.sub(b"", data), turns


def move_mouse(data: bytes, area: Area) -> bytes:
    """Mouse reports in `data` as the program would see them; those outside of its screen are left out.

    A button that is released outside counts as released at the edge: the program would take it to be held.
    """
    if b"\x1b[<" in data:
        data = _SGR_MOUSE.sub(lambda m: _move_sgr(m, area), data)
    if b"\x1b[M" in data:
        data = _X10_MOUSE.sub(lambda m: _move_x10(m, area), data)
    return data


def _move_sgr(found: re.Match[bytes], area: Area) -> bytes:
    col, row = int(found[2]) - area.first_col, int(found[3]) - area.first_row
    if found[4] == b"m":
        col, row = _nearest(col, area.cols), _nearest(row, area.rows)
    inside = 1 <= col <= area.cols and 1 <= row <= area.rows
    return b"\x1b[<%s;%d;%d%s" % (found[1], col, row, found[4]) if inside else b""


def _move_x10(found: re.Match[bytes], area: Area) -> bytes:
    col, row = found[2][0] - 32 - area.first_col, found[3][0] - 32 - area.first_row
    cols, rows = min(area.cols, 223), min(area.rows, 223)
    if (found[1][0] - 32) & ~0b11100 == _X10_RELEASE:
        col, row = _nearest(col, cols), _nearest(row, rows)
    inside = 1 <= col <= cols and 1 <= row <= rows
    return b"\x1b[M" + found[1] + bytes((col + 32, row + 32)) if inside else b""


def _nearest(place: int, size: int) -> int:
    return max(1, min(place, size))
