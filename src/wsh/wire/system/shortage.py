"""What the system refuses for want of room, recognised once for every door: disk space, inodes, a disk that can be written, descriptors.

`find_shortage` turns an exception of the system or of SQLite into one of our errors, if that is what it means. It looks
at the disk only where an exception names a file. Standard library alone, and no SQLite: the doors import this.
"""

from __future__ import annotations

import errno
import os
from typing import Literal

from wsh.wire.error import DescriptorsExhausted, DiskFull, WshError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
# SQLite's primary codes, and the extended ones of IOERR that mean a write.
_SQLITE_READONLY, _SQLITE_IOERR, _SQLITE_FULL, _SQLITE_CANTOPEN = 8, 10, 13, 14
_SQLITE_WRITES = {778, 1034, 1290, 1546, 4618, 4874, 5386}

Shortage = Literal["space", "inodes", "writing"]


def find_shortage(problem: BaseException, path: str | os.PathLike[str] | None = None) -> WshError | None:
    """Our error for a disk that is full or read-only, or for too few descriptors; None if `problem` is something else.

    `path` is the file or folder concerned, where the exception itself may not name it.
    """
    if isinstance(problem, WshError):
        return problem if isinstance(problem, DiskFull | DescriptorsExhausted) else None
    if isinstance(problem, BaseExceptionGroup):
        found = (find_shortage(inner, path) for inner in problem.exceptions)
        return next((error for error in found if error is not None), None)
    if isinstance(problem, OSError):
        if problem.errno in _NO_DESCRIPTORS:
            return DescriptorsExhausted()
        named = problem.filename if isinstance(problem.filename, str | os.PathLike) else path
        if problem.errno == errno.EROFS:
            return DiskFull(None if named is None else os.fspath(named), "writing")
        return _full(named) if problem.errno in _NO_ROOM else None
    code = getattr(problem, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _find_in_sqlite(code, path)
    return None


def is_refused_write(problem: BaseException) -> bool:
    """Whether SQLite could not write, as with a full disk: the file itself is sound."""
    code = getattr(problem, "sqlite_errorcode", None)
    sound = {_SQLITE_READONLY, _SQLITE_FULL, _SQLITE_CANTOPEN}
    return isinstance(code, int) and (code & 0xFF in sound or code in _SQLITE_WRITES)


def find_lacking(path: str | os.PathLike[str]) -> Shortage | None:
    """What the disk of `path` has none of."""
    folder = os.path.abspath(path)
    while True:
        try:
            found = os.statvfs(folder)
            break
        except OSError:
            if folder == os.path.dirname(folder):
                return None
            folder = os.path.dirname(folder)
    if found.f_flag & os.ST_RDONLY:
        return "writing"
    if found.f_files and not found.f_favail:
        return "inodes"
    return "space" if not found.f_bavail else None


def _find_in_sqlite(code: int, path: str | os.PathLike[str] | None) -> WshError | None:
    if code & 0xFF == _SQLITE_FULL:
        return _full(path)
    # "Cannot open" and "cannot write" have other causes as well: only a disk that is full or read-only now explains them.
    doubtful = code & 0xFF in {_SQLITE_READONLY, _SQLITE_CANTOPEN} or code in _SQLITE_WRITES
    return _full(path) if doubtful and path is not None and find_lacking(path) is not None else None


def _full(path: str | os.PathLike[str] | None) -> DiskFull:
    if path is None:
        return DiskFull()
    return DiskFull(os.fspath(path), find_lacking(path) or "space")
