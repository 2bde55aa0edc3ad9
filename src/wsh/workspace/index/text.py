"""The texts of an index: one flat file, each text after the other, appended to and never changed in place.

The database says where each text lies; what it does not mention is dead. So a builder that dies leaves nothing that
anybody would read, and a search can run over a mapping of the file at memory speed. A text ends with a newline that
is not part of it, so `^` holds at its start.

Only scanner processes map the file: whoever truncates a mapped file kills those who look at it, and the server must
outlive that. Everybody else reads with `pread`.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from wsh.workspace.error import IndexBroken


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a text lies, and its checksum."""

    start: int
    size: int
    crc: int


class TextWriter:
    """Appends at `end`, which is where the committed texts end; whatever lies behind is overwritten."""

    def __init__(self, path: Path, end: int = 0) -> None:
        flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if end == 0 else 0)
        self._fd = os.open(path, flags, 0o600)
        if os.fstat(self._fd).st_size < end:
            os.close(self._fd)
            raise IndexBroken("corrupt", "texts are missing")
        self.end = end
        self._dirty = False
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def append(self, data: bytes) -> TextPlace:
        place = TextPlace(self.end + self._pending_bytes, len(data), zlib.crc32(data))
        self._pending += (data, b"\n")
        self._pending_bytes += len(data) + 1
        if self._pending_bytes > 1 << 20:
            self.flush()
        return place

    def flush(self) -> None:
        data = memoryview(b"".join(self._pending))
        self._pending, self._pending_bytes = [], 0
        while data:
            written = os.pwrite(self._fd, data, self.end)
            self.end += written
            data = data[written:]
            self._dirty = True

    def sync(self) -> None:
        """All that was appended is on disk after this; call it before committing what refers to it."""
        self.flush()
        if self._dirty:
            os.fdatasync(self._fd)
            self._dirty = False

    def close(self) -> None:
        os.close(self._fd)


class TextReader:
    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise IndexBroken("corrupt", "its texts are gone") from None

    def read(self, place: TextPlace) -> bytes:
        """The text at `place`. Raises IndexBroken when it is not what was written there."""
        data = os.pread(self._fd, place.size, place.start)
        if len(data) != place.size or zlib.crc32(data) != place.crc:
            raise IndexBroken("corrupt", "a text has changed on disk")
        return data

    def close(self) -> None:
        os.close(self._fd)
