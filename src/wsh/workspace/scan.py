"""Finding a literal or a pattern in stored files: trigrams choose candidates, the text itself decides.

Pure reading: a connection, a needle and a deadline. A literal can be looked for on any thread; a pattern may need
exponential time and cannot be interrupted, so callers run it in a process that they can kill (`scan_child`).
"""

from __future__ import annotations

import re
import sqlite3
import time
from dataclasses import dataclass, field

from wsh.workspace.filter import Filter
from wsh.workspace.store import unpack

MAX_SPANS_PER_FILE = 200
MAX_MATCHES = 50_000

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


def find_literal(data: bytes, needle: bytes) -> tuple[int, list[Span]]:
    at = data.find(needle)
    if at < 0:
        return 0, []
    size = len(needle)
    count = data.count(needle)
    spans: list[Span] = []
    while at >= 0 and len(spans) < MAX_SPANS_PER_FILE:
        spans.append((at, at + size))
        at = data.find(needle, at + size)
    return count, spans


def find_pattern(data: bytes, pattern: re.Pattern[str]) -> tuple[int, list[Span]]:
    text = data.decode("utf-8", "replace")
    count = 0
    spans: list[Span] = []
    for match in pattern.finditer(text):
        start, end = match.span()
        if start == end:
            continue
        count += 1
        if len(spans) < MAX_SPANS_PER_FILE:
            spans.append((start, end))
    if spans and not data.isascii():
        spans = _to_bytes(text, spans)
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


def scan(
    connection: sqlite3.Connection,
    needle: bytes | re.Pattern[str],
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
    where = [condition] if condition else []
    if candidates_fts is not None:
        source = "grams CROSS JOIN file f ON f.id = grams.rowid"
        where.insert(0, "grams MATCH ?")
        values = [candidates_fts, *values]
    else:
        source = "file f"
        where.append("f.skip IS NULL")
    if part[1] > 1:
        where.append("f.id % ? = ?")
        values += [part[1], part[0]]
    sql = f"SELECT x.file, x.packed FROM {source} CROSS JOIN content x ON x.file = f.id WHERE {' AND '.join(where)}"
    result = ScanResult()
    total = 0
    for file_id, packed in connection.execute(sql, values):
        result.candidates += 1
        data = unpack(packed)
        count, spans = find_literal(data, needle) if isinstance(needle, bytes) else find_pattern(data, needle)
        if spans:
            result.files.append(FileMatch(file_id, count, spans))
            total += count
        if total > MAX_MATCHES:
            result.complete = False
            break
        if time.monotonic() > deadline:
            raise TimeoutError
    return result
