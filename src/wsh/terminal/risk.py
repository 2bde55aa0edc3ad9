"""Output of the kinds that the engine is known to die of, so that it can be tried elsewhere first.

Known of libghostty-vt in pyghostty 0.1.3: scrolling between left and right margins where cells hold links (each scroll
leaks a little of the page's memory for links until it panics), and links over most of an alternate screen of 50,000
cells. Both are rare; looking for them costs less than a hundredth of parsing.
"""

from __future__ import annotations

import ctypes
from typing import Final

from wsh.terminal.native import NULL, Native, ffi

_find: Final[Native] = ffi.cast(
    "void*(*)(void*, size_t, void*, size_t)", ctypes.cast(ctypes.CDLL(None).memmem, ctypes.c_void_p).value
)
_MARGINS: Final[Native] = ffi.from_buffer(b"[?69")
_LINK: Final[Native] = ffi.from_buffer(b"]8;")
_MANY_CELLS: Final[int] = 32 * 1024


def is_risky(pointer: Native, length: int, cells: int) -> bool:
    """Whether these bytes may begin what a terminal of so many cells is known to die of."""
    if _find(pointer, length, _MARGINS, 4) != NULL:
        return True
    return cells >= _MANY_CELLS and bool(_find(pointer, length, _LINK, 3) != NULL)
