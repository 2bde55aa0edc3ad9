"""Output of the kinds that the engine is known to die of, so that it can be tried elsewhere first.

Known of libghostty-vt in pyghostty 0.1.3: scrolling between left and right margins where cells hold links (each scroll
leaks a little of the page's memory for links until it panics), and links over most of an alternate screen of 50,000
cells. Both are rare; looking for them costs about a hundredth of parsing.
"""

from __future__ import annotations

import ctypes
from typing import Final

from wsh.terminal.native import NULL, Native, ffi

_libc = ctypes.CDLL(None)
_find: Final[Native] = ffi.cast(
    "void*(*)(void*, size_t, void*, size_t)", ctypes.cast(_libc.memmem, ctypes.c_void_p).value
)
_find_byte: Final[Native] = ffi.cast("void*(*)(void*, int, size_t)", ctypes.cast(_libc.memchr, ctypes.c_void_p).value)
_MARGINS: Final[Native] = ffi.from_buffer(b"?69")
_LINK: Final[Native] = ffi.from_buffer(b"]8;")
_QUESTION: Final[int] = ord("?")
_MANY_CELLS: Final[int] = 32 * 1024


def is_risky(pointer: Native, length: int, cells: int) -> bool:
    """Whether these bytes may begin what a terminal of so many cells is known to die of."""
    # A single byte is found six times as fast as three, and most output has no question mark.
    at = _find_byte(pointer, _QUESTION, length)
    if at != NULL:
        passed = ffi.cast("uint8_t*", at) - ffi.cast("uint8_t*", pointer)
        if _find(at, length - passed, _MARGINS, 3) != NULL:
            return True
    return cells >= _MANY_CELLS and bool(_find(pointer, length, _LINK, 3) != NULL)
