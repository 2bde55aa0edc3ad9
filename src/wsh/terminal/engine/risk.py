"""Output of the kinds that the engine is known to die of, so that it can be tried elsewhere first.

Known of libghostty-vt in pyghostty 0.1.3: scrolling between left and right margins where cells hold links (each scroll
leaks a little of the page's memory for links until it panics), and links over most of an alternate screen of 50,000
cells. Both are rare, so the search for them must cost next to nothing: a single byte is found ten times as fast as a
word, and most output lacks an escape or a question mark.
"""

from __future__ import annotations

import ctypes
from typing import Final

from wsh.terminal.engine.native import Native, ffi

_MARGINS: Final[bytes] = b"\x1b[?69"
_LINK: Final[bytes] = b"\x1b]8;"
_REST: Final[int] = 16
"""Bytes in front that may be the rest of a sequence which the output before began."""
_MANY_CELLS: Final[int] = 32 * 1024
_ESCAPE: Final[int] = 0x1B
_QUESTION: Final[int] = ord("?")

_libc = ctypes.CDLL(None)
# Addresses are taken as numbers, at half the price of pointers.
_find: Final[Native] = ffi.cast(
    "size_t(*)(size_t, size_t, char*, size_t)", ctypes.cast(_libc.memmem, ctypes.c_void_p).value
)
_find_byte: Final[Native] = ffi.cast("size_t(*)(size_t, int, size_t)", ctypes.cast(_libc.memchr, ctypes.c_void_p).value)


class RiskSearch:
    """Looks at the output of one terminal, piece by piece."""

    __slots__ = ("_escaped",)

    def __init__(self) -> None:
        self._escaped = True
        """Whether the piece before may have ended inside of a sequence."""

    def look(self, data: bytes, cells: int) -> bool:
        """Whether `data` may begin what a terminal of so many cells is known to die of."""
        before, self._escaped = self._escaped, b"\x1b" in data
        if self._escaped:
            if b"?" in data and _MARGINS in data:
                return True
            if cells >= _MANY_CELLS and _LINK in data:
                return True
        return before and _continues(data[:_REST], cells)

    def look_at(self, address: int, length: int, cells: int) -> bool:
        """The same for bytes in memory."""
        before, self._escaped = self._escaped, bool(_find_byte(address, _ESCAPE, length))
        if self._escaped:
            if _find_byte(address, _QUESTION, length) and _find(address, length, _MARGINS, len(_MARGINS)):
                return True
            if cells >= _MANY_CELLS and _find(address, length, _LINK, len(_LINK)):
                return True
        return before and _continues(bytes(ffi.buffer(ffi.cast("char*", address), min(length, _REST))), cells)


def _continues(front: bytes, cells: int) -> bool:
    return b"?69" in front or (cells >= _MANY_CELLS and b"]8;" in front)
