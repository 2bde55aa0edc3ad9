"""A session's folder on disk: its description and its snapshots. The journal beside them is the keeper's.

A snapshot file is a small header, the session's own facts as JSON, and the engine's state; a checksum covers it all. What is
damaged is skipped, never trusted: an older snapshot, or the journal from its start, is used instead. Writes happen in a
thread and replace atomically; a write that fails (a full disk) is reported to the caller and changes nothing.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.wire.json.object import JsonObject
from wsh.wire.system.private_file import open_regular, read_regular, write_private

if TYPE_CHECKING:
    from wsh.terminal.snapshot import TerminalState

_MAGIC = b"WSHSNAP1"
_HEADER = struct.Struct("<8sQIIQ")  # magic, offset, crc, length of facts, length of engine state
KEEP_SNAPSHOTS = 2


@dataclass(frozen=True)
class Snapshot:
    """The state of a session when it had parsed exactly `offset` bytes."""

    offset: int
    facts: JsonObject
    engine: bytes


@dataclass(frozen=True)
class TakenSnapshot:
    """One that is on its way to the disk. Everything that takes long is left to `SessionFolder.write_snapshot`."""

    offset: int
    facts: JsonObject
    terminal: TerminalState


class SessionFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        # Writes and the removal come from several threads: what is removed must not come back.
        self._lock = threading.Lock()
        self._removed = False
        self.missing = False
        """It could not be made, so that nothing of the session is on disk."""

    def create(self) -> None:
        """Raises OSError as the disk does; may be tried again."""
        self.missing = True
        with self._lock:
            if not self._removed:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.missing = False

    def remove(self) -> None:
        with self._lock:
            self._removed = True
            shutil.rmtree(self.path, ignore_errors=True)

    def write_meta(self, meta: JsonObject) -> None:
        self._write("meta.json", json.dumps(meta, ensure_ascii=False).encode("utf-8", "surrogateescape"))

    def _write(self, name: str, *parts: bytes | memoryview) -> None:
        with self._lock:
            if self._removed:
                raise FileNotFoundError(errno.ENOENT, "the session was killed", str(self.path))
            write_private(self.path / name, *parts)

    def read_meta(self) -> JsonObject | None:
        """The description, or None if there is none that can be read."""
        try:
            meta = json.loads(read_regular(self.path / "meta.json"))
        except (OSError, ValueError, RecursionError):
            return None
        return meta if isinstance(meta, dict) else None

    def write_snapshot(self, snapshot: TakenSnapshot) -> None:
        facts = json.dumps(snapshot.facts, ensure_ascii=False).encode("utf-8", "surrogateescape")
        engine = snapshot.terminal.to_parts()
        crc = zlib.crc32(facts)
        for part in engine:
            crc = zlib.crc32(part, crc)
        header = _HEADER.pack(_MAGIC, snapshot.offset, crc, len(facts), sum(map(len, engine)))
        self._write(f"snapshot.{snapshot.offset:020d}", header, facts, *engine)
        for old in self._snapshot_paths()[KEEP_SNAPSHOTS:]:
            old.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what a server left half written when it died. Called before anything is written here."""
        for stray in [*self.path.glob(".snapshot.*"), *self.path.glob(".meta.json.*")]:
            try:
                stray.unlink()
            except OSError:
                pass

    def read_snapshots(self) -> tuple[list[Snapshot], int]:
        """Intact snapshots, the newest first, and how many damaged ones were passed over."""
        good: list[Snapshot] = []
        damaged = 0
        for path in self._snapshot_paths():
            snapshot = _decode(path)
            if snapshot is None:
                damaged += 1
            else:
                good.append(snapshot)
        return good, damaged

    def discard_snapshot(self, offset: int) -> None:
        """Nobody is to load that one again."""
        with self._lock:
            (self.path / f"snapshot.{offset:020d}").unlink(missing_ok=True)

    def size_bytes(self) -> int:
        total = 0
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            pass
        return total

    def _snapshot_paths(self) -> list[Path]:
        return sorted(self.path.glob("snapshot.*"), reverse=True)


def _decode(path: Path) -> Snapshot | None:
    try:
        with open(open_regular(path), "rb") as file:
            magic, offset, crc, facts_size, engine_size = _HEADER.unpack(file.read(_HEADER.size))
            # Nothing more is read of a file that is not as long as it says: it may be longer than the memory.
            size = facts_size + engine_size
            if magic != _MAGIC or os.fstat(file.fileno()).st_size != _HEADER.size + size:
                return None
            body = file.read(size)
        if len(body) != size or zlib.crc32(body) != crc:
            return None
        facts = json.loads(body[:facts_size])
    except (OSError, struct.error, ValueError, OverflowError, MemoryError, RecursionError):
        return None
    return Snapshot(offset, facts, body[facts_size:]) if isinstance(facts, dict) else None
