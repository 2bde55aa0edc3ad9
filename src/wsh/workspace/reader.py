"""Connections for reading an index, kept between searches and given to one of them at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsh.workspace.store import open_index

_KEPT = 8


class Readers:
    """Thread-safe. A connection to a generation that is no longer current is closed when it comes back."""

    def __init__(self) -> None:
        self._idle: list[tuple[Path, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def borrow(self, path: Path) -> Iterator[sqlite3.Connection]:
        connection = self._take(path)
        sound = False
        try:
            yield connection
            sound = True
        except TimeoutError:
            sound = True
            raise
        finally:
            connection.set_progress_handler(None, 0)
            self._give(path, connection, sound)

    def _take(self, path: Path) -> sqlite3.Connection:
        with self._lock:
            for at, (kept, connection) in enumerate(self._idle):
                if kept == path:
                    del self._idle[at]
                    return connection
        return open_index(path)

    def _give(self, path: Path, connection: sqlite3.Connection, sound: bool) -> None:
        with self._lock:
            if sound and not self._closed and path.exists():
                self._idle.append((path, connection))
                old = self._idle[:-_KEPT]
                del self._idle[:-_KEPT]
            else:
                old = [(path, connection)]
            old += [pair for pair in self._idle if not pair[0].exists()]
            self._idle = [pair for pair in self._idle if pair[0].exists()]
        for _, stale in old:
            stale.close()

    def forget(self, path: Path) -> None:
        """Close what is open on `path`, which turned out to be broken."""
        with self._lock:
            gone = [pair for pair in self._idle if pair[0] == path]
            self._idle = [pair for pair in self._idle if pair[0] != path]
        for _, connection in gone:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()
