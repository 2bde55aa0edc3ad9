"""The few calls of the C library that Python does not offer."""

from __future__ import annotations

import ctypes

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_KEEP_SIZE_AND_PUNCH_HOLE = 3

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def become_reaper() -> None:
    """Orphans among our descendants become our children."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become the reaper of orphans")


def hide_memory() -> None:
    """No debugger of the same user reads us, and nothing of us is written to a core file. Children lose it with their exec."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def give_back(fd: int, start: int, count: int) -> bool:
    """Return the memory of a part of a memfd to the system; it reads as zeros from now on."""
    return bool(_libc.fallocate(fd, _KEEP_SIZE_AND_PUNCH_HOLE, start, count) == 0)
