"""Keeps None, True and False alive under a Qt binding that is built for interpreters where they cannot die.

Before Python 3.12 these are counted like everything else. The binding gives them back without counting: each call of a method that returns
nothing takes one from None, and a window that draws for some minutes ends the interpreter.
"""

from __future__ import annotations

import ctypes
import sys

_PLENTY = 1 << 40


def keep_constants() -> None:
    """Give them more references than a window can lose in its life. Does nothing where they are immortal."""
    if sys.version_info >= (3, 12) or sys.implementation.name != "cpython":
        return
    for constant in (None, True, False):
        counter = ctypes.c_ssize_t.from_address(id(constant))
        if counter.value < _PLENTY:
            counter.value += _PLENTY
