"""Whether enough descriptors are left for something to be begun that must not stop half-way, and copies of some. Imports nothing heavy."""

from __future__ import annotations

import os

TO_SPAWN = 24
"""What the keeper wants to have free before it starts a program: that program's own, and enough to end trees with."""


def require(count: int, any_fd: int) -> None:
    """Raise OSError (EMFILE or ENFILE) unless `count` more can be opened. `any_fd` is one that is open."""
    taken: list[int] = []
    try:
        for _ in range(count):
            taken.append(os.dup(any_fd))
    finally:
        for fd in taken:
            os.close(fd)


def duplicate(fds: list[int]) -> list[int]:
    """A copy of each, or of none: raises OSError (EMFILE or ENFILE) then."""
    copies: list[int] = []
    try:
        for fd in fds:
            copies.append(os.dup(fd))
    except OSError:
        for copy in copies:
            os.close(copy)
        raise
    return copies
