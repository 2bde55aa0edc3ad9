"""What a sandbox needs in the file system while it lives, and takes away again: mount points for missing paths, a temporary folder.

Each session has a record on disk before anything is made, so that a server that was killed leaves nothing behind: the next one reads the
records. Records of all servers of a user lie in one folder; what another record still names is left.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from wsh.wire.system.place import ensure_private

log = logging.getLogger(__name__)

Points: TypeAlias = Sequence[tuple[str, bool]]

_NOT_OURS_TO_WRITE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP)
_ROUNDS = 16
"""So often something that appears in a folder while it is removed is removed as well."""


class PointRefused(Exception):
    """A mount point cannot be made where it is needed; the text says which one and why."""


@dataclass
class Belongings:
    """What one session had made."""

    points: list[tuple[str, bool]] = field(default_factory=list)
    """Empty folders (True) and empty files that were not there before."""
    temporary: str | None = None

    def to_facts(self) -> dict[str, Any]:
        return {"points": [list(point) for point in self.points], "temporary": self.temporary}


class SandboxLedger:
    """The records of one server's sessions in a folder that all servers of the user share."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._server = server

    def _path(self, id: str) -> Path:
        return self._folder / f"{self._server}.{id}.json"

    def make_points(self, id: str, choose: Callable[[set[str]], Points]) -> None:
        """Make the mount points that are missing, recorded first. Raises OSError or PointRefused, with nothing left.

        `choose` is given the points of all sessions and says which ones this one needs; nobody makes or removes any meanwhile.
        """
        ensure_private(self._folder)
        with self._locked():
            belongings = Belongings(list(choose(self.list_points())))
            if belongings.points:
                self._make(id, belongings)

    def make_temporary(self, id: str) -> str:
        """A folder of the session's own, recorded first. Nobody else has a say in it, so nobody is waited for. Raises OSError."""
        ensure_private(self._folder)
        path = os.path.join(tempfile.gettempdir(), f"wsh-{secrets.token_hex(8)}")
        self._make(id, Belongings(temporary=path))
        return path

    def _make(self, id: str, belongings: Belongings) -> None:
        try:
            self._write(id, json.dumps(belongings.to_facts()).encode("utf-8", "surrogateescape"))
            for path, is_folder in belongings.points:
                try:
                    _make_empty(path, is_folder)
                except FileExistsError:
                    pass  # another session's, which names it too
                except OSError as problem:
                    if problem.errno not in _NOT_OURS_TO_WRITE:
                        raise
                    raise PointRefused(f"{path} cannot be made there: {problem.strerror}") from None
            if belongings.temporary is not None:
                self._make_own(id, belongings.temporary)
        except BaseException:
            self._remove(id)
            raise

    def _make_own(self, id: str, path: str) -> None:
        try:
            os.mkdir(path, 0o700)
        except OSError:
            self._path(id).unlink(missing_ok=True)  # what is there is not ours to remove
            raise

    def _write(self, id: str, data: bytes) -> None:
        """Write it without syncing: a machine that loses power loses the mount points' users too, and an empty folder is all that may stay."""
        fd = os.open(self._path(id), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def remove(self, id: str) -> None:
        """Take away what the session had made and nobody else needs. Idempotent. What cannot be removed is tried again by `sweep`."""
        belongings = _read(self._path(id))
        if belongings is not None and belongings.temporary is not None and not _remove_tree(belongings.temporary):
            return
        if self._path(id).exists():
            with self._locked():
                self._remove(id)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Against the other servers of this user, and the other threads of this one."""
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _remove(self, id: str) -> None:
        path = self._path(id)
        belongings = _read(path)
        path.unlink(missing_ok=True)
        if belongings is None:
            return
        used = self.list_points() if belongings.points else ()
        for point, is_folder in reversed(belongings.points):
            if point not in used:
                _remove_empty(point, is_folder)

    def sweep(self, alive: Collection[str]) -> None:
        """Remove what belongs to sessions of this server that do not live any more."""
        for server, id in _list_records(self._folder):
            if server == self._server and id not in alive:
                self.remove(id)

    def list_points(self) -> set[str]:
        """Of all sessions."""
        return {point for other in self._list_all() for point, _ in other.points}

    def _list_all(self) -> list[Belongings]:
        return [found for path in self._folder.glob("*.json") if (found := _read(path)) is not None]


def sweep_all(folder: Path) -> None:
    """Remove what belongs to the sessions of all servers whose records lie in `folder`, none of which runs any more."""
    for server, id in _list_records(folder):
        SandboxLedger(folder, server).remove(id)


def _list_records(folder: Path) -> list[tuple[str, str]]:
    """Server and session of each. A server may have a dot in its name, an id has none."""
    return [(server, id) for server, _, id in (path.stem.rpartition(".") for path in folder.glob("*.json"))]


def _read(path: Path) -> Belongings | None:
    try:
        facts = json.loads(path.read_bytes().decode("utf-8", "surrogateescape"))
        points = [(str(point), bool(is_folder)) for point, is_folder in facts["points"]]
        temporary = facts["temporary"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Belongings(points, None if temporary is None else str(temporary))


def _make_empty(path: str, is_folder: bool) -> None:
    """Raises OSError, FileExistsError if something is there already."""
    with _open_parent(path) as (parent, name):
        if is_folder:
            os.mkdir(name, 0o755, dir_fd=parent)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(name, flags, 0o644, dir_fd=parent))


def _remove_empty(path: str, is_folder: bool) -> None:
    try:
        with _open_parent(path) as (parent, name):
            if is_folder:
                os.rmdir(name, dir_fd=parent)
            elif os.stat(name, dir_fd=parent, follow_symlinks=False).st_size == 0:
                os.unlink(name, dir_fd=parent)
    except OSError:
        pass  # somebody put something there, or took it away


@contextmanager
def _open_parent(path: str) -> Iterator[tuple[int, str]]:
    """The folder that `path` lies in, and its name there. Raises OSError where a link stands in the way: it may lead anywhere."""
    folder, name = os.path.split(path)
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.readlink(f"/proc/self/fd/{fd}") != folder:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
        yield fd, name
    finally:
        os.close(fd)


def _remove_tree(top: str) -> bool:
    """Remove what a program has left, however it did: closed to itself, nested without end, or changed by what still runs of it.

    No link is followed, and what lies around `top` is not touched. False if something stays.
    """
    try:
        for _ in range(_ROUNDS):
            fd = _open_up(top)
            try:
                _clear(fd)
            finally:
                os.close(fd)
            try:
                os.rmdir(top)
                return True
            except OSError as problem:
                if problem.errno != errno.ENOTEMPTY:
                    raise
    except FileNotFoundError:
        return True
    except OSError as problem:
        log.warning("%s is left behind: %s", top, problem)
        return False
    log.warning("%s is left behind: something goes on writing there", top)
    return False


def _clear(top: int) -> None:
    """Remove what is in the folder `top`. Folders move up to it before they are emptied, so that no depth is too deep. Raises OSError."""
    todo = os.listdir(top)
    while todo:
        name = todo.pop()
        try:
            os.unlink(name, dir_fd=top)
        except FileNotFoundError:
            continue  # another thread was quicker
        except IsADirectoryError:
            todo += _dissolve(top, name)


def _dissolve(top: int, name: str) -> list[str]:
    """Remove the folder `name` of `top` with the files in it, and move its folders to `top`, where they have the names that are returned."""
    moved = []
    try:
        fd = _open_up(name, top)
        try:
            for inner in os.listdir(fd):
                try:
                    os.unlink(inner, dir_fd=fd)
                except IsADirectoryError:
                    os.close(_open_up(inner, fd))  # who moves a folder must be allowed to write to it
                    moved.append(secrets.token_hex(8))
                    os.rename(inner, moved[-1], src_dir_fd=fd, dst_dir_fd=top)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=top)
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY):  # it changes; there is a next round
            raise
    return moved


def _open_up(name: str, parent: int | None = None) -> int:
    """The folder `name` of `parent`, which is given all rights of its owner first. Raises OSError, also for a link."""
    look = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{look}", 0o700)
        return os.open(f"/proc/self/fd/{look}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(look)
