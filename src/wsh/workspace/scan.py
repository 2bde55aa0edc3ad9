"""Finding a literal or a pattern in the texts of an index: trigrams choose candidates, the text itself decides.

Runs in scanner processes (`scan_child`), because a pattern may need exponential time and only a process can be
stopped, and because the texts are mapped into memory here (see `text`).
"""

from __future__ import annotations

import mmap
import os
import re
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from wsh.workspace.error import IndexBroken
from wsh.workspace.filter import Filter
from wsh.workspace.pattern import Demand, compile_pattern, study

MAX_SPANS_PER_FILE = 200
MAX_MATCHES = 50_000
_MANY_SPANS = 5_000
_FEW_SPANS = 4

Span = tuple[int, int]


@dataclass
class FileMatch:
    file: int
    count: int
    spans: list[Span]  # bytes; at most MAX_SPANS_PER_FILE


@dataclass
class ScanResult:
    files: list[FileMatch] = field(default_factory=list)
    candidates: int = 0
    complete: bool = True


class Needle(Protocol):
    @property
    def anchors(self) -> tuple[bytes, ...]:
        """Bytes that stand in every match, the rarest first."""
        ...

    def find(self, data: bytes) -> tuple[int, list[Span]]:
        """Number of matches in a UTF-8 text, and the spans of the first of them."""
        ...


class Literal:
    def __init__(self, text: str) -> None:
        self._needle = text.encode("utf-8", "replace")

    @property
    def anchors(self) -> tuple[bytes, ...]:
        return (self._needle,)

    def find(self, data: bytes) -> tuple[int, list[Span]]:
        needle = self._needle
        at = data.find(needle)
        size = len(needle)
        spans: list[Span] = []
        while at >= 0 and len(spans) < MAX_SPANS_PER_FILE:
            spans.append((at, at + size))
            at = data.find(needle, at + size)
        return (len(spans) if at < 0 else len(spans) + data.count(needle, at)), spans


class Pattern:
    """A regular expression. ASCII texts are matched as bytes, which saves decoding them; others as characters."""

    def __init__(self, pattern: str) -> None:
        self._pattern = compile_pattern(pattern)
        demand: Demand = study(self._pattern)
        self._anchors = tuple(anchor.encode("utf-8", "replace") for anchor in demand.anchors)
        self._by_line = bool(self._anchors) and not demand.crosses_lines
        self._bytes: re.Pattern[bytes] | None = None
        try:
            if pattern.isascii():
                self._bytes = re.compile(pattern.encode("ascii"), re.MULTILINE)
        except re.error:
            pass  # written for characters, as \u00e9 or \N{…}

    @property
    def anchors(self) -> tuple[bytes, ...]:
        return self._anchors

    def find(self, data: bytes) -> tuple[int, list[Span]]:
        if self._bytes is None or not data.isascii():
            return self._find_characters(data)
        if not self._by_line:
            return _collect((m.span() for m in self._bytes.finditer(data)), [])
        anchor = self._anchors[0]
        count, spans = 0, list[Span]()
        at = data.find(anchor)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            found, spans = _collect((m.span() for m in self._bytes.finditer(data, start, end)), spans)
            count += found
            at = data.find(anchor, end)
        return count, spans

    def _find_characters(self, data: bytes) -> tuple[int, list[Span]]:
        text = data.decode("utf-8", "replace")
        count, spans = _collect((m.span() for m in self._pattern.finditer(text)), [])
        if spans and not data.isascii():
            spans = _to_bytes(text, spans)
        return count, spans


def _collect(found: object, spans: list[Span]) -> tuple[int, list[Span]]:
    count = 0
    for start, end in found:  # type: ignore[attr-defined]  # an iterator of pairs
        if start != end:
            count += 1
            if len(spans) < MAX_SPANS_PER_FILE:
                spans.append((start, end))
    return count, spans


def _to_bytes(text: str, spans: list[Span]) -> list[Span]:
    converted = []
    at = offset = 0
    for start, end in spans:
        offset += len(text[at:start].encode("utf-8", "replace"))
        width = len(text[start:end].encode("utf-8", "replace"))
        converted.append((offset, offset + width))
        at, offset = end, offset + width
    return converted


class MappedTexts:
    """The texts of an index in memory, mapped again when they have grown."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = -1
        self._map: mmap.mmap | None = None

    def view(self, at_least: int) -> mmap.mmap:
        size = os.fstat(self._fd).st_size
        if size < at_least or size == 0:
            raise IndexBroken("corrupt", "texts are missing")
        if self._map is None or size != self._size:
            self._map = mmap.mmap(self._fd, size, prot=mmap.PROT_READ)
            self._size = size
        return self._map

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        os.close(self._fd)


def scan(
    connection: sqlite3.Connection,
    texts: MappedTexts,
    needle: Needle,
    candidates_fts: str | None,
    narrowing: Filter,
    deadline: float,
    part: tuple[int, int] = (0, 1),
) -> ScanResult:
    """All matches in the candidate files. `part` (n of m) takes every m-th file, for several scanners at once.

    Past `deadline` (monotonic) raises TimeoutError; past MAX_MATCHES the result is what was found so far, with
    `complete` false.
    """
    narrowing.install(connection)
    condition, values = narrowing.file_condition()
    where = ["f.text_size > 0", *([condition] if condition else [])]
    source = "file f"
    if candidates_fts is not None:
        source = "grams CROSS JOIN file f ON f.id = grams.rowid"
        where.insert(0, "grams MATCH ?")
        values = [candidates_fts, *values]
    if part[1] > 1:
        where.append("f.id % ? = ?")
        values += [part[1], part[0]]
    sql = f"SELECT f.id, f.text_start, f.text_start + f.text_size FROM {source} WHERE {' AND '.join(where)}"
    rows = connection.execute(sql, values).fetchall()
    result = ScanResult(candidates=len(rows))
    if not rows:
        return result
    view = texts.view(max(row[2] for row in rows))
    anchors, find = needle.anchors, needle.find
    total = kept = 0
    for file_id, start, end in rows:
        if any(view.find(anchor, start, end) < 0 for anchor in anchors):
            continue
        count, spans = find(view[start:end])
        if spans:
            if kept > _MANY_SPANS:
                del spans[_FEW_SPANS:]
            kept += len(spans)
            result.files.append(FileMatch(file_id, count, spans))
            total += count
        if total > MAX_MATCHES:
            result.complete = False
            break
        if time.monotonic() > deadline:
            raise TimeoutError
    return result
