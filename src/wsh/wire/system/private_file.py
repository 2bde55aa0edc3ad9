"""Folders and files that only their owner can read. Imports nothing of weight: short commands write such files too."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeVar

    Folder = TypeVar("Folder", str, os.PathLike[str], Path)


_MOST_BYTES = 64 << 20
"""More than any description of ours has."""


class FolderUnusable(PermissionError):
    """A folder of ours cannot be had; the text says which and why."""


def ensure_private(folder: Folder) -> Folder:
    """Make `folder` with mode 0700, or check that it is ours and make it so. Raises FolderUnusable otherwise."""
    try:
        os.makedirs(os.path.dirname(os.path.abspath(os.fspath(folder))), exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        info = os.lstat(folder)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise FileExistsError
        if stat.S_IMODE(info.st_mode) != 0o700:
            os.chmod(folder, 0o700)
    except FileExistsError as problem:
        what = problem.filename or folder
        raise FolderUnusable(f"{what} is not a folder of this user; remove it and try again") from None
    except OSError as problem:
        refused = FolderUnusable(f"the folder {folder} cannot be used: {problem.strerror}")
        refused.errno = problem.errno
        raise refused from None
    return folder


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor of `path` for reading. Raises OSError for what is no regular file, such as a FIFO, and never waits for a writer."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The content of a regular file of moderate size. Raises OSError for anything else."""
    with open(open_regular(path), "rb") as file:
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, "too large to be read", os.fspath(path))
        return file.read(_MOST_BYTES)


def write_private(path: str | os.PathLike[str], *parts: bytes | memoryview) -> None:
    """Replace `path` atomically with a file of mode 0600 that has `parts`, one after the other."""
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as out:
            out.writelines(parts)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        raise
