"""A lock that is a file: held by one process, released by its death, and gone when it is given up.

A process that waited for a file which its holder removed meanwhile holds a lock that nobody else can see; so a lock counts only while
its path still leads to it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take_lock(path: Path, *, wait: bool) -> int | None:
    """The descriptor that holds the lock; None if another holds it and we are not to `wait`."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _leads_to(path, fd):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def drop_lock(path: Path, fd: int) -> None:
    """Remove the file while we hold it, then let go."""
    if _leads_to(path, fd):
        os.unlink(path)
    os.close(fd)


def _leads_to(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except FileNotFoundError:
        return False
