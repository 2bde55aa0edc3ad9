"""Indexes open for reading: a connection and the texts, kept between searches and given to one of them at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsh.workspace.index.store import open_index
from wsh.workspace.index.text import TextPlace, TextReader

_KEPT = 8


class Index:
    """One open index. All reads within `snapshot` see the same state of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = open_index(path)
        self._texts: tuple[str, TextReader] | None = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def read_text(self, file_id: int) -> bytes:
        row = self.connection.execute(
            "SELECT text_start, text_stored, text_size, text_crc FROM file WHERE id = ?", (file_id,)
        ).fetchone()
        if row is None or row[0] is None:
            return b""
        return self.texts().read(TextPlace(*row))

    def text_path(self) -> Path:
        name = self.connection.execute("SELECT value FROM meta WHERE key = 'text'").fetchone()[0]
        return self.path.parent / str(json.loads(name))

    def texts(self) -> TextReader:
        path = self.text_path()
        if self._texts is None or self._texts[0] != path.name:
            if self._texts is not None:
                self._texts[1].close()
                self._texts = None
            self._texts = (path.name, TextReader(path))
        return self._texts[1]

    def close(self) -> None:
        self.connection.close()
        if self._texts is not None:
            self._texts[1].close()
            self._texts = None


class Readers:
    """Thread-safe. An index whose generation is no longer current is closed when it comes back."""

    def __init__(self) -> None:
        self._idle: list[Index] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def borrow(self, path: Path) -> Iterator[Index]:
        index = self._take(path)
        sound = False
        try:
            with index.snapshot():
                yield index
            sound = True
        except TimeoutError:
            sound = True
            raise
        finally:
            index.connection.set_progress_handler(None, 0)
            self._give(index, sound)

    def _take(self, path: Path) -> Index:
        with self._lock:
            for at, index in enumerate(self._idle):
                if index.path == path:
                    del self._idle[at]
                    return index
        return Index(path)

    def _give(self, index: Index, sound: bool) -> None:
        with self._lock:
            idle = [*self._idle, index] if sound and not self._closed else list(self._idle)
            kept = [entry for entry in idle if entry.path.exists()][-_KEPT:]
            gone = [entry for entry in {id(e): e for e in [*idle, index]}.values() if entry not in kept]
            self._idle = kept
        for entry in gone:
            entry.close()

    def forget(self, path: Path) -> None:
        """Close what is open on `path`, which turned out to be broken."""
        with self._lock:
            gone = [index for index in self._idle if index.path == path]
            self._idle = [index for index in self._idle if index.path != path]
        for index in gone:
            index.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for index in idle:
            index.close()


def is_interruption(problem: sqlite3.Error) -> bool:
    return isinstance(problem, sqlite3.OperationalError) and "interrupted" in str(problem)
