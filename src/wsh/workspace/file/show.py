"""Showing a part of a file: text with its encoding and hash, inside the workspace only.

The file is read once from start to end, whatever its size, and only the wanted lines are kept. A file that is no text
is described, not dumped.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wsh.wire.json.object import JsonObject
from wsh.workspace.error import Forbidden, InvalidArguments, NothingThere
from wsh.workspace.file.language import language_of
from wsh.workspace.file.source import decode

_PART = 1 << 20
_WHOLE_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True)
class Wanted:
    start_line: int
    end_line: int | None
    max_bytes: int


def resolve_inside(root: str, path: str) -> str:
    """The real path of `path` (relative to `root`, or absolute). Forbidden when it leaves the root, links resolved."""
    if "\0" in path:
        raise InvalidArguments("A path cannot contain NUL.")
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(root, os.path.expanduser(path) if path.startswith("~/") else path))
    if real != real_root and not real.startswith(real_root.rstrip("/") + "/"):
        raise Forbidden(
            f"{path} lies outside the workspace {root}.",
            hint="Only files of the workspace can be shown; name the folder it lies in as workspace.",
            path=path,
        )
    return real


def show(
    root: str, path: str, wanted: Wanted, stop: threading.Event, check: Callable[[str], None] = lambda path: None
) -> JsonObject:
    """Facts and text of a file. Raises NothingThere, Forbidden or InvalidArguments, and TimeoutError after `stop`.

    `check` is called with the canonical path before anything is read, and refuses by raising.
    """
    real = resolve_inside(root, path)
    check(real)
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NothingThere(f"There is no file {path} in {root}.", hint="Search for it, or list the folder.") from None
    except OSError as problem:
        raise Forbidden(f"{path} cannot be read: {problem.strerror}.", hint="Check its permissions.") from None
    try:
        opened = os.path.realpath(f"/proc/self/fd/{fd}")
        if opened.startswith("/") and opened != real:  # a link was put in the way since it was resolved
            check(resolve_inside(root, opened))
        info = os.fstat(fd)
        if stat.S_ISDIR(info.st_mode):
            raise InvalidArguments(f"{path} is a folder.", hint="Name a file in it.", path=path)
        if not stat.S_ISREG(info.st_mode):
            raise InvalidArguments(f"{path} is not a regular file.", hint="Devices and pipes are not shown.")
        shown = _read(fd, info.st_size, wanted, stop)
    finally:
        os.close(fd)
    relative = os.path.relpath(real, os.path.realpath(root))
    lang = language_of(relative)
    return (
        {"path": relative, "size": info.st_size, "modifiedNs": info.st_mtime_ns, "lang": lang}
        | shown
        | ({"mimeType": mimetypes.guess_type(relative)[0]} if shown["binary"] else {})
    )


def locate(root: str, path: str, text: bytes) -> int | None:
    """The line (from 1) at which `text` begins in a file now, if it is still there."""
    try:
        with open(resolve_inside(root, path), "rb") as file:
            decoded = decode(file.read(_WHOLE_LIMIT))
    except OSError:
        return None
    at = -1 if decoded is None else decoded[0].find(text)
    return None if at < 0 or decoded is None else decoded[0].count(b"\n", 0, at) + 1


def _read(fd: int, size: int, wanted: Wanted, stop: threading.Event) -> JsonObject:
    first = os.pread(fd, 8192, 0)
    digest = hashlib.sha256()
    if first.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) and size <= _WHOLE_LIMIT:
        raw = b"".join(iter(lambda: os.read(fd, _PART), b""))
        digest.update(raw)
        decoded = decode(raw)
        if decoded is None:
            return _binary(digest.hexdigest(), first)
        data, encoding = decoded
        taker = _Taker(wanted)
        taker.feed(data)
        return taker.finish(digest.hexdigest(), encoding)
    if b"\0" in first or decode(first[: len(first) - 3] if len(first) == 8192 else first) is None:
        for part in _parts(fd, stop):
            digest.update(part)
        return _binary(digest.hexdigest(), first)
    taker = _Taker(wanted)
    for part in _parts(fd, stop):
        digest.update(part)
        taker.feed(part)
    return taker.finish(digest.hexdigest(), None)


def _parts(fd: int, stop: threading.Event) -> Iterator[bytes]:
    while part := os.read(fd, _PART):
        if stop.is_set():
            raise TimeoutError
        yield part


def _binary(sha256: str, head: bytes) -> JsonObject:
    return {
        "binary": True,
        "sha256": sha256,
        "encoding": None,
        "text": None,
        "startLine": None,
        "endLine": None,
        "totalLines": None,
        "truncated": False,
        "headHex": head[:32].hex(),
    }


class _Taker:
    """Takes lines `start_line` to `end_line` out of a stream of bytes, up to `max_bytes` of them."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._line = 1
        self._kept = bytearray()
        self._full = False
        self._last = b"\n"

    def feed(self, part: bytes) -> None:
        at = 0
        self._last = part[-1:] or self._last
        while at < len(part):
            newline = part.find(b"\n", at)
            end = len(part) if newline < 0 else newline + 1
            within = self._line >= self._wanted.start_line
            within = within and (self._wanted.end_line is None or self._line <= self._wanted.end_line)
            if within and not self._full:
                room = self._wanted.max_bytes - len(self._kept)
                self._kept += part[at : min(end, at + room)]
                self._full = end - at > room
            elif self._full or self._line > (self._wanted.end_line or self._line):
                self._line += part.count(b"\n", at)  # only counting is left
                return
            if newline >= 0:
                self._line += 1
            at = end

    def finish(self, sha256: str, encoding: str | None) -> JsonObject:
        total = self._line - 1 if self._last == b"\n" else self._line
        data = bytes(self._kept)
        if self._full:  # do not cut a character in half
            while data and data[-1] & 0xC0 == 0x80:
                data = data[:-1]
            if data and data[-1] >= 0xC0:
                data = data[:-1]
        if encoding is None:
            decoded = decode(data)
            text, encoding = (
                (data.decode("utf-8", "replace"), "utf-8")
                if decoded is None
                else (
                    decoded[0].decode("utf-8", "replace"),
                    decoded[1],
                )
            )
        else:
            text = data.decode("utf-8", "replace")
        start = self._wanted.start_line
        if start > max(total, 1):
            raise InvalidArguments(
                f"startLine {start} is beyond the file's {total} lines.",
                hint="Ask for lines that exist.",
                totalLines=total,
            )
        shown_lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
        return {
            "binary": False,
            "sha256": sha256,
            "encoding": encoding,
            "text": text,
            "startLine": start,
            "endLine": max(start + shown_lines - 1, start - 1 if not text else start),
            "totalLines": total,
            "truncated": self._full,
        }
