"""Two sequences that the library does otherwise than xterm, put right by what is fed after them.

- DECSTR, the soft reset, which it skips: `tput init` and `reset` send it. Its parts are fed instead.
- Mode 40, by which a program may change the width (DECCOLM): the width is the session's, so the mode goes off again at once.

Both are rare, so the search must cost next to nothing: bytes without an escape are passed over at the speed of memory.
"""

from __future__ import annotations

import ctypes
from typing import Final

from wsh.terminal.engine.native import Native, ffi

SOFT_RESET: Final[bytes] = b"\x1b[!p"
WIDTH_ALLOWED: Final[bytes] = b"\x1b[?40h"
_LONGEST: Final[int] = max(len(SOFT_RESET), len(WIDTH_ALLOWED))
_NO_WIDTH: Final[bytes] = b"\x1b[?40l"
_RESET_PARTS: Final[bytes] = (
    b"\x1b[?6l\x1b[?69l\x1b[r\x1b[4l\x1b[?7h\x1b[?25h\x1b[?1l\x1b>"  # origin, margins, insert, wrap, cursor, keys
    b'\x1b[0$}\x1b[0m\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[0"q'  # main display, pen, character sets, protection
    b"\x1b[H\x1b7"  # the saved cursor is at home
)

_libc = ctypes.CDLL(None)
_find: Final[Native] = ffi.cast(
    "size_t(*)(size_t, size_t, char*, size_t)", ctypes.cast(_libc.memmem, ctypes.c_void_p).value
)
_find_byte: Final[Native] = ffi.cast("size_t(*)(size_t, int, size_t)", ctypes.cast(_libc.memchr, ctypes.c_void_p).value)
_ESCAPE: Final[int] = 0x1B
_MARKS: Final[tuple[tuple[int, bytes], ...]] = ((ord("!"), SOFT_RESET), (ord("?"), WIDTH_ALLOWED))
"""A byte that is quickly looked for, and the sequence that has it."""


class CorrectionSearch:
    """Finds where such sequences end, in output that comes in pieces."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun = b""
        """The unfinished sequence at the end of the piece before."""

    def find(self, pointer: Native, length: int) -> list[tuple[int, bytes]]:
        """The offset behind each sequence in `length` bytes at `pointer`, and the sequence; in order."""
        address = int(ffi.cast("size_t", pointer))
        found: list[tuple[int, bytes]] = []
        begun, self._begun = self._begun, b""
        if begun:
            front = begun + _bytes_at(address, min(length, _LONGEST))
            for _, sequence in _MARKS:
                if front.startswith(sequence):
                    found.append((len(sequence) - len(begun), sequence))
            if not found and _begins_one(front):
                self._begun = front
                return []
        escape = _find_byte(address, _ESCAPE, length)
        if not escape:
            return found
        end = address + length
        last = _bytes_at(max(address, end - _LONGEST + 1), min(length, _LONGEST - 1))
        self._begun = last[last.rfind(b"\x1b") :] if b"\x1b" in last else b""
        if not _begins_one(self._begun):
            self._begun = b""
        for mark, sequence in _MARKS:
            at = escape if _find_byte(escape, mark, end - escape) else 0
            while at and (place := _find(at, end - at, sequence, len(sequence))):
                at = place + len(sequence)
                found.append((at - address, sequence))
        return sorted(found) if len(found) > 1 else found


def _begins_one(text: bytes) -> bool:
    return any(sequence.startswith(text) and text != sequence for _, sequence in _MARKS)


def correct(sequence: bytes, row: int, col: int) -> bytes:
    """What is fed after `sequence`, with the cursor in that cell, where it stays."""
    if sequence == WIDTH_ALLOWED:
        return _NO_WIDTH
    return _RESET_PARTS + b"\x1b[%d;%dH" % (row + 1, col + 1)


def _bytes_at(address: int, length: int) -> bytes:
    return bytes(ffi.buffer(ffi.cast("char*", address), length))
