"""Finding a literal or a pattern in the texts of an index: trigrams choose candidates, the text itself decides.

Runs in scanner processes (`scan_child`), because a pattern may need exponential time and only a process can be
stopped.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from wsh.workspace.index.text import TextPlace, TextReader
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.linear import Linear, Span, foreign_lines, linearize
from wsh.workspace.search.pattern import Demand, compile_pattern, study

MAX_SPANS_PER_FILE = 200
MAX_MATCHES = 50_000
_MANY_SPANS = 5_000
_FEW_SPANS = 4
_SAMPLE_BYTES = 256 * 1024
KEPT_BYTES = 128 << 20
_SPAN_BYTES = 128  # that a span in a list takes
_LINE_COST = 3  # trying a line takes as long as trying so many places
_WORTH_TIMING = 4 << 20
_TRIES = 2
_Row: TypeAlias = tuple[int, int, int, int, int, int]
_SIZE = 4  # where a row of `scan` has the size of its text


class SearchedText:
    """A text in UTF-8. `ascii`: there is nothing but ASCII in it."""

    __slots__ = ("_foreign", "ascii", "data")

    def __init__(self, data: bytes, ascii: bool | None = None) -> None:
        self.data = data
        self.ascii = data.isascii() if ascii is None else ascii
        self._foreign: list[Span] | None = None

    @property
    def foreign(self) -> list[Span]:
        """The lines that are not ASCII alone; looked for once, unless there are so many that they take more room than the text."""
        if self._foreign is not None:
            return self._foreign
        found = [] if self.ascii else foreign_lines(self.data)
        if len(found) * _SPAN_BYTES <= len(self.data):
            self._foreign = found
        return found


@dataclass
class FileMatch:
    file: int
    count: int
    spans: Sequence[Sequence[int]]  # bytes, start and end; at most MAX_SPANS_PER_FILE


@dataclass
class ScanResult:
    files: list[FileMatch] = field(default_factory=list)
    candidates: int = 0
    complete: bool = True


class Needle(Protocol):
    def tune(self, sample: bytes, size: int) -> None:
        """Choose how to look, by a sample of the texts that will be looked at, which have `size` bytes in all."""
        ...

    def find(self, text: SearchedText) -> tuple[int, list[Span]]:
        """Number of matches in the text, and spans of the first."""
        ...


class LiteralMatcher:
    def __init__(self, text: str) -> None:
        self._needle = text.encode("utf-8", "replace")

    def tune(self, sample: bytes, size: int) -> None:
        pass

    def find(self, text: SearchedText) -> tuple[int, list[Span]]:
        data, needle = text.data, self._needle
        at = data.find(needle)
        size = len(needle)
        count = 0
        spans: list[Span] = []
        while at >= 0:
            count += 1
            if count <= MAX_SPANS_PER_FILE:
                spans.append((at, at + size))
            at = data.find(needle, at + size)
        return count, spans


class PatternMatcher:
    """A regular expression. ASCII texts are matched in place as bytes; others are decoded.

    The matcher steps through a text far slower than a search for fixed text does. So where every match begins with
    the same text, the places of that are looked up and tried; and where a match cannot leave its line, the lines that
    hold an anchor, whichever is less work. A matcher that reads a text once finds the same if it can (`linear`), and is
    taken where there is nothing fixed to look for or where a trial says that it is quicker.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = compile_pattern(pattern)
        demand: Demand = study(self._pattern)
        self._anchors = [anchor.encode("utf-8", "replace") for anchor in demand.anchors]
        self._by_line = bool(self._anchors) and not demand.crosses_lines
        self._crosses_lines = demand.crosses_lines
        self._linear = linearize(self._pattern)
        self._linear_first = False
        self._bytes: re.Pattern[bytes] | None = None
        try:
            if pattern.isascii():
                self._bytes = re.compile(pattern.encode("ascii"), re.MULTILINE)
        except re.error:
            pass  # written for characters, as \u00e9 or \N{…}
        self._prefix = demand.prefix.encode("utf-8", "replace") if len(demand.prefix) > 1 else b""

    def tune(self, sample: bytes, size: int) -> None:
        self._anchors.sort(key=sample.count)
        if self._by_line and self._prefix:
            lines, places = sample.count(self._anchors[0]), sample.count(self._prefix)
            if lines * _LINE_COST < places:
                self._prefix = b""
        if self._linear is not None and (self._by_line or self._prefix) and size >= _WORTH_TIMING:
            text = SearchedText(sample, True)
            slow = _time(lambda: self.find(text))
            self.read_once()
            self._linear_first = _time(lambda: self.find(text)) < slow

    def read_once(self) -> None:
        """Take the matcher that reads a text once, if it can be taken, though there is something fixed to look for."""
        self._linear_first = True

    def find(self, text: SearchedText) -> tuple[int, list[Span]]:
        data = text.data
        if self._linear is not None and (self._linear_first or not (self._by_line or self._prefix)):
            return self._find_linear(self._linear, text)
        if self._bytes is not None and text.ascii:
            if self._prefix:
                return self._find_by_prefix(self._bytes, data)
            if self._by_line:
                return self._find_by_line(self._bytes, data)
            spans: list[Span] = []
            return _collect(self._bytes.finditer(data), spans), spans
        if self._by_line:
            return self._find_in_decoded_lines(data)
        if self._anchors and self._anchors[0] not in data:
            return 0, []
        return self._find_characters(data)

    def _find_by_prefix(self, pattern: re.Pattern[bytes], data: bytes) -> tuple[int, list[Span]]:
        prefix, match_at = self._prefix, pattern.match
        count = 0
        spans: list[Span] = []
        at = data.find(prefix)
        while at >= 0:
            match = match_at(data, at)
            if match is None:
                at = data.find(prefix, at + 1)
                continue
            after = match.end()
            count += 1
            if len(spans) < MAX_SPANS_PER_FILE:
                spans.append((at, after))
            at = data.find(prefix, after)
        return count, spans

    def _lines(self, data: bytes) -> Iterator[Span]:
        """The lines that hold the rarest anchor."""
        anchor = self._anchors[0]
        at = data.find(anchor)
        while at >= 0:
            line_end = data.find(b"\n", at)
            if line_end < 0:
                line_end = len(data)
            yield data.rfind(b"\n", 0, at) + 1, line_end
            at = data.find(anchor, line_end)

    def _find_by_line(self, pattern: re.Pattern[bytes], data: bytes) -> tuple[int, list[Span]]:
        count = 0
        spans: list[Span] = []
        for start, end in self._lines(data):
            count += _collect(pattern.finditer(data, start, end), spans)
        return count, spans

    def _find_in_decoded_lines(self, data: bytes) -> tuple[int, list[Span]]:
        count = 0
        spans: list[Span] = []
        for start, end in self._lines(data):
            found, inside = self._find_characters(data[start:end])
            count += found
            spans += [(start + s, start + e) for s, e in inside[: MAX_SPANS_PER_FILE - len(spans)]]
        return count, spans

    def _find_linear(self, linear: Linear, text: SearchedText) -> tuple[int, list[Span]]:
        """Lines of ASCII alone by the quick matcher; others by their characters, as many at once as follow each other."""
        data = text.data
        size = len(data)
        spans: list[Span] = []
        if text.ascii or linear.exact:
            return linear.collect(data, 0, size, spans, MAX_SPANS_PER_FILE), spans
        if self._crosses_lines:
            return self._find_characters(data) if linear.may_match(data, 0, size) else (0, [])
        count = at = 0
        for start, end in text.foreign:
            if at < start:
                count += linear.collect(data, at, start, spans, MAX_SPANS_PER_FILE)
            if linear.may_match(data, start, end):
                found, inside = self._find_characters(data[start:end])
                count += found
                spans += [(start + s, start + e) for s, e in inside[: MAX_SPANS_PER_FILE - len(spans)]]
            at = end
        count += linear.collect(data, at, size, spans, MAX_SPANS_PER_FILE)
        return count, spans

    def _find_characters(self, data: bytes) -> tuple[int, list[Span]]:
        text = data.decode("utf-8", "replace")
        spans: list[Span] = []
        count = _collect(self._pattern.finditer(text), spans)
        return count, _to_bytes(text, spans)


def _collect(found: Iterator[re.Match[Any]], spans: list[Span]) -> int:
    """How many are not empty; the first of them go to `spans`."""
    count = 0
    for match in found:
        span = match.span()
        if span[0] != span[1]:
            count += 1
            if len(spans) < MAX_SPANS_PER_FILE:
                spans.append(span)
    return count


def _time(work: Callable[[], object]) -> int:
    """Nanoseconds of the processor that it takes, at its best."""
    times = []
    for _ in range(_TRIES):
        started = time.thread_time_ns()
        work()
        times.append(time.thread_time_ns() - started)
    return min(times)


def _to_bytes(text: str, spans: list[Span]) -> list[Span]:
    converted = []
    at = offset = 0
    for start, end in spans:
        offset += len(text[at:start].encode("utf-8", "replace"))
        width = len(text[start:end].encode("utf-8", "replace"))
        converted.append((offset, offset + width))
        at, offset = end, offset + width
    return converted


class KeptTexts:
    """The texts of an index, unpacked once and kept as far as there is room."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = TextReader(path)
        self._kept: dict[int, SearchedText] = {}
        self._room = KEPT_BYTES
        self._listed: tuple[object, list[_Row]] = (None, [])

    def read(self, ascii: int, start: int, stored: int, size: int, crc: int) -> SearchedText:
        text = self._kept.get(start)
        if text is None or len(text.data) != size:
            text = SearchedText(self._reader.read(TextPlace(start, stored, size, crc)), bool(ascii))
            if size <= self._room:
                self._room -= size
                self._kept[start] = text
        return text

    def list_rows(self, connection: sqlite3.Connection, sql: str, values: Sequence[object]) -> list[_Row]:
        """What a query finds that depends on the index alone; the last answer is kept until the index changes."""
        key = (connection, connection.execute("PRAGMA data_version").fetchone(), sql, *values)
        if self._listed[0] != key:
            self._listed = (key, connection.execute(sql, values).fetchall())
        return self._listed[1]

    def close(self) -> None:
        self._reader.close()


def scan(
    connection: sqlite3.Connection,
    texts: KeptTexts,
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
    columns = "f.id, f.text_ascii, f.text_start, f.text_stored, f.text_size, f.text_crc"
    sql = f"SELECT {columns} FROM {source} WHERE {' AND '.join(where)}"
    # Globs are a function of this process, of which the query knows only the name.
    of_index = candidates_fts is None and not narrowing.paths
    rows = texts.list_rows(connection, sql, values) if of_index else connection.execute(sql, values).fetchall()
    result = ScanResult(candidates=len(rows))
    if not rows:
        return result
    size = _SAMPLE_BYTES // 32
    some = rows[:: max(1, len(rows) // 32)]
    sample = b"".join(texts.read(*place).data[:size] for _, *place in some)
    needle.tune(sample, sum(row[_SIZE] for row in rows))
    total = kept = 0
    for file_id, *place in rows:
        count, spans = needle.find(texts.read(*place))
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
