"""Memory that a terminal can be fed from without copying."""

from __future__ import annotations

from typing import Any

from wsh.terminal.native import ffi


class SharedBuffer:
    """Memory of somebody else (an mmap, a memoryview) that a terminal can be fed from without copying.

    The memory cannot be closed or resized before this is closed.
    """

    __slots__ = ("length", "pointer")

    def __init__(self, memory: Any) -> None:
        self.pointer: Any = ffi.from_buffer("uint8_t[]", memory)
        self.length = len(self.pointer)

    def close(self) -> None:
        if self.pointer is not None:
            ffi.release(self.pointer)
            self.pointer = None
            self.length = 0


def buffer_of(memory: Any) -> SharedBuffer:
    return SharedBuffer(memory)
