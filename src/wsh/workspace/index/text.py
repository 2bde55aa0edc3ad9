"""The texts of an index: one flat file of compressed texts, appended to and never changed in place.

The database says where each text lies; what it does not mention is dead. So a builder that dies leaves nothing that
anybody would read. Every text is compressed by itself, so that one can be had without the others.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import zstandard

from wsh.workspace.error import IndexBroken

_LEVEL = 3
LARGEST = 256 << 20
"""No text is larger than this; a file that says so is not ours."""


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a text lies, how many bytes it takes there, its own size, and its checksum."""

    start: int
    stored: int
    size: int
    crc: int


class TextWriter:
    """Appends at `end`, which is where the committed texts end; whatever lies behind is overwritten. Without `end` the file is new."""

    def __init__(self, path: Path, end: int | None = None) -> None:
        flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if end is None else 0)
        self._fd = os.open(path, flags, 0o600)
        self.end = end or 0
        if os.fstat(self._fd).st_size < self.end:
            os.close(self._fd)
            raise IndexBroken("corrupt", "texts are missing")
        self._dirty = False
        self._pending: list[bytes] = []
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._pending_bytes = 0

    def append(self, data: bytes) -> TextPlace:
        packed = self._compressor.compress(data)
        place = TextPlace(self.end + self._pending_bytes, len(packed), len(data), zlib.crc32(data))
        self._pending.append(packed)
        self._pending_bytes += len(packed)
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
        self._decompressor = zstandard.ZstdDecompressor()

    def read(self, place: TextPlace) -> bytes:
        """The text at `place`. Raises IndexBroken when it is not what was written there."""
        packed = os.pread(self._fd, place.stored, place.start)
        if len(packed) != place.stored:
            raise IndexBroken("corrupt", "texts are missing")
        try:
            if zstandard.frame_content_size(packed) == place.size <= LARGEST:
                data = self._decompressor.decompress(packed)
                if len(data) == place.size and zlib.crc32(data) == place.crc:
                    return data
        except zstandard.ZstdError:
            pass
        raise IndexBroken("corrupt", "a text has changed on disk")

    def close(self) -> None:
        os.close(self._fd)
