"""Reading one file for the index: its bytes, its encoding, and reasons to leave it out.

Nothing here raises for a file that cannot be had: a `Skipped` says why, and the reason is counted and shown. The text
is handed on as UTF-8 bytes whatever the file was written in.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from dataclasses import dataclass

GONE = "gone"  # listed, and no longer there: not a reason to show but no file at all

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SNIFF_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Text:
    data: bytes
    encoding: str
    sha256: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    reason: str
    size: int
    mtime_ns: int


def modified_ns(info: os.stat_result) -> int:
    """When it was changed last, as near as 64 bits come: a file may have a time after the year 2262."""
    return max(-(2**63), min(info.st_mtime_ns, 2**63 - 1))


def read_source(path: str, max_bytes: int) -> Text | Skipped:
    """The text of a file, or why it is not indexed. Follows no symlink, neither of the file nor of a folder above it.

    `path` is absolute, and that of the workspace in it is canonical: git lists files below a folder that a link has replaced since.
    """
    size = mtime = 0
    try:
        for _ in range(3):
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                before = os.fstat(fd)
                size, mtime = before.st_size, modified_ns(before)
                opened = os.readlink(f"/proc/self/fd/{fd}")
                if opened != path:
                    return Skipped(GONE if opened.endswith(" (deleted)") else "symlink", size, mtime)
                if not stat.S_ISREG(before.st_mode):
                    return Skipped("notRegular", size, mtime)
                if size > max_bytes:
                    return Skipped("tooLarge", size, mtime)
                raw = _read_all(fd, max_bytes + 1)
                after = os.fstat(fd)
            finally:
                os.close(fd)
            if (modified_ns(after), after.st_size) == (mtime, size) and len(raw) == size:
                break
        else:
            return Skipped("changedWhileRead", size, mtime)
    except OSError:
        return _not_opened(path, size, mtime)
    decoded = decode(raw)
    if decoded is None:
        return Skipped("binary", size, mtime)
    data, encoding = decoded
    if is_minified(data):
        return Skipped("minified", size, mtime)
    return Text(data, encoding, hashlib.sha256(raw).hexdigest(), size, mtime)


def _not_opened(path: str, size: int, mtime: int) -> Skipped:
    """A symlink has times of its own to compare later. What cannot be read is tried again by every build instead: a
    change of its permissions does not show in them."""
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Skipped(GONE, size, mtime)
    except OSError:
        return Skipped("unreadable", size, mtime)
    if stat.S_ISLNK(info.st_mode):
        return Skipped("symlink", info.st_size, modified_ns(info))
    return Skipped("unreadable", size, mtime)


def _read_all(fd: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    while left > 0:
        part = os.read(fd, min(left, 1 << 20))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode(raw: bytes) -> tuple[bytes, str] | None:
    """The text as UTF-8 and the encoding it was in; None when this is no text."""
    for bom, encoding in _BOMS:
        if raw.startswith(bom):
            try:
                return raw.decode(encoding).encode("utf-8", "replace"), encoding
            except UnicodeDecodeError:
                return raw[len(bom) :].decode(encoding.removesuffix("-sig"), "replace").encode(), encoding
    if b"\0" in raw[:_SNIFF_BYTES]:
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_odd(raw)
    if "\0" in text:
        return None
    return raw, "utf-8"


def _decode_odd(raw: bytes) -> tuple[bytes, str] | None:
    """Bytes that are not UTF-8: damaged UTF-8 keeps what is sound of it, else they are Latin-1, or no text."""
    control = sum(raw[:_SNIFF_BYTES].count(bytes([c])) for c in (*range(1, 9), *range(14, 27), *range(28, 32)))
    if b"\0" in raw or control * 50 > min(len(raw), _SNIFF_BYTES):
        return None
    repaired = raw.decode("utf-8", "replace")
    broken = repaired.count("\ufffd")
    sound = sum(1 for c in repaired if c > "\x7f") - broken
    if sound >= broken:
        return repaired.encode("utf-8"), "utf-8"
    return raw.decode("latin-1").encode("utf-8"), "iso-8859-1"


def is_minified(data: bytes) -> bool:
    """Text that people do not read: very long lines, as bundlers and data dumps make them."""
    size = len(data)
    if size < 4096:
        return False
    lines = data.count(b"\n") + 1
    if size / lines > 400:
        return True
    if size < 20_000:
        return False
    at = 0
    while at < size:  # any line beyond 20,000 bytes; steps land on newlines, so this reads little
        end = data.rfind(b"\n", at, at + 20_001)
        if end < 0:
            return size - at > 20_000
        at = end + 1
    return False
