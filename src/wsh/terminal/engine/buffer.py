"""Memory that a terminal can be fed from without copying."""

from __future__ import annotations

from wsh.terminal.engine.native import Native, ffi


class SharedBuffer:
    """Memory of somebody else (an mmap, a memoryview) that a terminal can be fed from without copying.

    The memory cannot be closed or resized before this is closed.
    """

    __slots__ = ("address", "length", "pointer")

    def __init__(self, memory: Native) -> None:
        self.pointer: Native = ffi.from_buffer("uint8_t[]", memory)
        self.address = int(ffi.cast("size_t", self.pointer))
        self.length = len(self.pointer)

    def close(self) -> None:
        if self.pointer is not None:
            ffi.release(self.pointer)
            self.pointer = None
            self.address = self.length = 0


def buffer_of(memory: Native) -> SharedBuffer:
    return SharedBuffer(memory)
