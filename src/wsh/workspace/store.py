"""The index on disk: one folder per workspace, one SQLite file per generation, a pointer to the current one.

A whole build writes a new file and moves the pointer; an incremental one is a single WAL transaction on the current
file. Either way a builder that dies leaves the old index as it was. A file is never renamed over another, because a
write-ahead log that stayed behind would be applied to a database it does not belong to.

Full-text tables hold no text: `content` holds each file once, compressed, and a document is taken out of them by
giving its words again (`word_row`, `gram_text`), which therefore must not change without a new `FORMAT`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import zstandard

from wsh.wire.place import ensure_private, write_private
from wsh.workspace.error import IndexBroken
from wsh.workspace.word import hump_words

FORMAT = 1
APPLICATION_ID = 0x77736869  # "wshi"
INDEXED = ("code", "prose")

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, source TEXT NOT NULL, lang TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, indexed_ns INTEGER NOT NULL, skip TEXT, sha256 TEXT, encoding TEXT, lines INTEGER,
  bytes INTEGER NOT NULL DEFAULT 0);
CREATE TABLE content(file INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE chunk(
  id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, file INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  scope TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, start_byte INTEGER NOT NULL,
  end_byte INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
  name, scope, body, humps, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE grams USING fts5(pieces, content='', tokenize='trigram', detail=none);
"""
INDEXES = (
    "CREATE INDEX chunk_by_file ON chunk(file)",
    "CREATE INDEX chunk_by_uid ON chunk(uid)",
    "CREATE INDEX chunk_by_name ON chunk(name COLLATE NOCASE) WHERE name <> ''",
)

_packer = zstandard.ZstdCompressor(level=1, write_checksum=True)
_unpacker = zstandard.ZstdDecompressor()


def pack(data: bytes) -> bytes:
    return _packer.compress(data)


def unpack(packed: bytes) -> bytes:
    try:
        return _unpacker.decompress(packed)
    except zstandard.ZstdError as problem:
        raise IndexBroken("corrupt", str(problem)) from None


@lru_cache(maxsize=8192)
def _name_parts(name: str) -> str:
    return hump_words(name.encode("utf-8", "surrogateescape"))


def word_row(path: str, name: str, scope: str, text: bytes) -> tuple[str, str, str, str]:
    """The columns of one chunk in the words table."""
    around = f"{path} {scope}" if scope else path
    name_parts, around_parts = _name_parts(name), _name_parts(around)
    return (
        f"{name} {name_parts}" if name_parts else name,
        f"{around} {around_parts}" if around_parts else around,
        text.decode("utf-8", "replace"),
        hump_words(text),
    )


def path_key(path: str) -> bytes:
    return hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=32).digest()


def chunk_uid(key: bytes, text: bytes, seen: dict[int, int]) -> int:
    """A number that stays as long as path (by its key) and text do; `seen` tells equal chunks of a file apart."""
    base = int.from_bytes(hashlib.blake2b(text, key=key, digest_size=8).digest(), "big", signed=True)
    count = seen.get(base, 0)
    seen[base] = count + 1
    return base if count == 0 else chunk_uid(key, f"{base}:{count}".encode(), {})


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

    def new_file(self) -> Path:
        return self.folder / f"index-{time.time_ns():x}.db"

    def publish(self, path: Path) -> None:
        """Make `path` the current index and remove the others. The caller holds the lock."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        write_private(self.pointer, path.name.encode("ascii"))
        self.sweep()

    def sweep(self) -> None:
        """Remove what dead builders and former generations left. The caller holds the lock."""
        current = self.find_current()
        keep = set() if current is None else {current.name, f"{current.name}-wal", f"{current.name}-shm"}
        for entry in self.folder.iterdir():
            if re.match(r"index-[0-9a-f]+\.db|\.current\.", entry.name) and entry.name not in keep:
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


def create(path: Path, root: str) -> sqlite3.Connection:
    """A new, empty index file, tuned for filling it once. It becomes an index when published."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
        f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};" + SCHEMA
    )
    set_meta(connection, root=root, commits=0)
    return connection


def open_index(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """The index file, checked. Raises IndexBroken when it is corrupt or of another format."""
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION_ID:
                raise IndexBroken("corrupt", "not an index of wsh")
            if found != FORMAT:
                raise IndexBroken("version", f"format {found}, this program writes {FORMAT}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA cache_size=-32768")
            connection.execute("PRAGMA mmap_size=268435456")
            if not write:
                connection.execute("PRAGMA query_only=1")
            connection.execute("SELECT value FROM meta WHERE key = 'commits'").fetchone()[0]
        except BaseException:
            connection.close()
            raise
    except (sqlite3.DatabaseError, TypeError) as problem:
        if isinstance(problem, sqlite3.OperationalError) and "locked" in str(problem):
            raise
        raise IndexBroken("corrupt", str(problem)) from None
    return connection


def set_meta(connection: sqlite3.Connection, **values: Any) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)",
        [(key, json.dumps(value)) for key, value in values.items()],
    )


def get_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    try:
        return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    except (sqlite3.DatabaseError, ValueError) as problem:
        raise IndexBroken("corrupt", str(problem)) from None


def is_corruption(problem: BaseException) -> bool:
    """Whether a database error means that the file is damaged, rather than busy or interrupted."""
    if isinstance(problem, IndexBroken):
        return True
    if not isinstance(problem, sqlite3.DatabaseError):
        return False
    text = str(problem)
    return any(mark in text for mark in ("malformed", "not a database", "no such table", "corrupt", "disk I/O error"))
