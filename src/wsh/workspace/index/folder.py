"""Where the index of a workspace lives: a folder with a pointer, generations of files, and the builders' lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wsh.wire.system.place import ensure_private, write_private

_LEFTOVER = re.compile(r"index-[0-9a-f]+\.db|text-[0-9a-f]+\.bin|\.(current|build\.json)\.")


@dataclass(frozen=True)
class IndexFolder:
    """Where the index of one workspace lives."""

    folder: Path
    root: str

    @classmethod
    def of(cls, base: Path, root: str) -> IndexFolder:
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(root))[:40].strip("-.") or "root"
        return cls(base / f"{slug}-{digest}", root)

    def ensure(self) -> None:
        ensure_private(self.folder.parent)
        ensure_private(self.folder)

    @property
    def pointer(self) -> Path:
        return self.folder / "current"

    @property
    def progress_file(self) -> Path:
        return self.folder / "build.json"

    def find_current(self) -> Path | None:
        """The file that the pointer names, or None when there is no index."""
        try:
            name = self.pointer.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        path = self.folder / name
        return path if re.fullmatch(r"index-[0-9a-f]+\.db", name) and path.is_file() else None

    def new_files(self) -> tuple[Path, Path]:
        """Names for a new generation: database and texts."""
        stamp = f"{time.time_ns():x}"
        return self.folder / f"index-{stamp}.db", self.folder / f"text-{stamp}.bin"

    def publish(self, path: Path) -> None:
        """Make `path` the current index. The caller holds the lock."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        write_private(self.pointer, path.name.encode("ascii"))

    def sweep(self, text_name: str | None) -> None:
        """Remove what dead builders and former generations left; `text_name` is in use. The caller holds the lock."""
        current = self.find_current()
        keep = {text_name}
        if current is not None:
            keep |= {current.name, f"{current.name}-wal", f"{current.name}-shm"}
        for entry in self.folder.iterdir():
            if _LEFTOVER.match(entry.name) and entry.name not in keep:
                entry.unlink(missing_ok=True)

    @contextmanager
    def locked(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the builders' lock. Without `wait`, yields False when another holds it."""
        fd = os.open(self.folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(fd)

    def is_building(self) -> bool:
        if not self.folder.is_dir():
            return False
        with self.locked(wait=False) as free:
            return not free
