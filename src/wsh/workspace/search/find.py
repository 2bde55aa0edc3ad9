"""Finding chunks of files: by words, or from the matches that a scan brought.

Works on one connection and knows no transcripts, arguments or cursors. The list it returns is ranked and the same for
every page of one query: candidates are re-ranked in blocks of fixed size, so asking for more never reorders what came
before.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from bisect import bisect_right
from typing import Any

from wsh.wire.json.object import JsonObject
from wsh.workspace.index.reader import Index
from wsh.workspace.search import rank
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.hit import Candidate, encode_id
from wsh.workspace.search.pattern import literal_to_fts
from wsh.workspace.search.query import Query, Term, plain_terms, to_fts, wanted_terms
from wsh.workspace.search.scan import FileMatch
from wsh.workspace.search.snippet import MatchMark, make_snippet, mark_spans, mark_terms
from wsh.workspace.search.word import fold

BLOCK = 100
_NEAR = 20
FILE_BLOCK = 40
_MAX_SPREAD_FILES = 300

_COLUMNS = (
    "c.id, c.uid, c.file, c.kind, c.name, c.scope, c.start_line, c.end_line, c.start_byte, c.end_byte, "
    "f.path, f.lang, f.source, f.mtime_ns"
)


class FileFinder:
    """One search over the files of an index. Holds the texts it has read, so it lives for one call."""

    def __init__(self, index: Index, narrowing: Filter, now: float) -> None:
        self._index = index
        self._connection = index.connection
        self._narrowing = narrowing
        self._now = now
        self._texts: dict[int, bytes] = {}
        self._marks: dict[int, list[MatchMark]] = {}
        narrowing.install(index.connection)

    def text(self, file_id: int) -> bytes:
        found = self._texts.get(file_id)
        if found is None:
            found = self._texts[file_id] = self._index.read_text(file_id)
        return found

    # words

    def find_words(self, query: Query, need: int) -> list[Candidate]:
        terms = wanted_terms(query)
        asked = rank.asked_parts(terms)
        found: list[Candidate] = []
        seen: set[int] = set()
        expression = to_fts(query)
        blocks = -(-need // BLOCK)
        rows = self._word_rows(expression, blocks * BLOCK)
        for at in range(0, len(rows), BLOCK):
            block = [self._candidate(row, asked) for row in rows[at : at + BLOCK]]
            if at == 0 and isinstance(query, Term):
                have = {c.row for c in block}
                block += [
                    self._candidate(row, asked) for row in self._defined_as(query, expression) if row[0] not in have
                ]
            block = [c for c in block if c.row not in seen]
            block.sort(key=lambda c: c.order)
            if at == 0 and len(terms) > 1:
                self._weigh_nearness(block[:_NEAR], terms)
                block.sort(key=lambda c: c.order)
            spread_out(block)
            seen.update(c.row for c in block)
            found += block
        if len(found) < need:
            spread = plain_terms(query)
            if spread is not None and len(spread) > 1:
                found += self._spread(spread, {c.file for c in found}, asked)
        return found

    def _word_rows(self, expression: str, limit: int) -> list[tuple[object, ...]]:
        condition, values = self._narrowing.condition()
        if not condition:
            sql = (
                f"SELECT {_COLUMNS}, w.score FROM (SELECT rowid AS id, {rank.BM25.replace('(', '(words, ')} AS score "
                "FROM words WHERE words MATCH ? ORDER BY score LIMIT ?) w "
                "CROSS JOIN chunk c ON c.id = w.id CROSS JOIN file f ON f.id = c.file ORDER BY w.score, c.id"
            )
            return self._connection.execute(sql, (expression, limit)).fetchall()
        sql = (
            f"SELECT {_COLUMNS}, {rank.BM25.replace('(', '(words, ')} AS score FROM words "
            "CROSS JOIN chunk c ON c.id = words.rowid CROSS JOIN file f ON f.id = c.file "
            f"WHERE words MATCH ? AND {condition} ORDER BY score, c.id LIMIT ?"
        )
        return self._connection.execute(sql, (expression, *values, limit)).fetchall()

    def _defined_as(self, term: Term, expression: str) -> list[tuple[object, ...]]:
        """Definitions of exactly that name, which a common word's many other uses might push out of the block."""
        condition, values = self._narrowing.condition()
        sql = (
            f"SELECT {_COLUMNS}, -6.0 FROM chunk c CROSS JOIN file f ON f.id = c.file "
            f"WHERE c.name = ? COLLATE NOCASE AND c.name <> ''{' AND ' + condition if condition else ''} LIMIT 60"
        )
        return self._connection.execute(sql, (term.text, *values)).fetchall()

    def _candidate(self, row: tuple[Any, ...], asked: frozenset[str]) -> Candidate:
        chunk_id, uid, file_id, kind, name, scope, first, last, _, _, path, lang, source, mtime, bm25 = row
        age = self._now - mtime / 1e9
        facts = {"source": source, "path": path, "lang": lang, "kind": kind, "name": name, "scope": scope}
        score = rank.score_words(bm25, kind, name, path, age, asked)
        return Candidate(chunk_id, uid, "file", score, facts, file_id, (first, last))

    def _weigh_nearness(self, candidates: list[Candidate], terms: list[Term]) -> None:
        for candidate in candidates:
            marks = self._term_marks(candidate, terms)
            candidate.score.factors["near"] = rank.nearness_factor([(m.line, m.term) for m in marks], len(terms))

    def _term_marks(self, candidate: Candidate, terms: list[Term]) -> list[MatchMark]:
        marks = self._marks.get(candidate.row)
        if marks is None:
            lines = self.text(candidate.file).decode("utf-8", "replace").split("\n")
            first, last = candidate.lines
            marks = mark_terms("\n".join(lines[first - 1 : last]), terms, first - 1)
            self._marks[candidate.row] = marks
        return marks

    def _spread(self, terms: list[Term], have: set[int], asked: frozenset[str]) -> list[Candidate]:
        """Files that hold all the words, though no chunk of them does; the chunk with most of them is shown."""
        parts = [fts for term in terms for token in term.tokens if (fts := literal_to_fts(token)) is not None]
        if not parts:
            return []
        condition, values = self._narrowing.file_condition()
        sql = (
            "SELECT f.id, f.path FROM grams CROSS JOIN file f ON f.id = grams.rowid WHERE grams MATCH ?"
            f"{' AND ' + condition if condition else ''} LIMIT ?"
        )
        found: list[Candidate] = []
        for file_id, path in self._connection.execute(
            sql, (" AND ".join(parts), *values, _MAX_SPREAD_FILES)
        ).fetchall():
            if file_id in have:
                continue
            text = self.text(file_id).decode("utf-8", "replace")
            marks = mark_terms(f"{path}\n{text}", terms)
            if len({mark.term for mark in marks}) < len(terms):
                continue
            best = self._busiest_chunk(file_id, [m for m in marks if m.line > 0])
            if best is not None:
                candidate = self._candidate((*best, 0.0), asked)
                candidate.score.factors["spread"] = 0.2
                found.append(candidate)
        found.sort(key=lambda c: c.order)
        return found

    def _busiest_chunk(self, file_id: int, marks: list[MatchMark]) -> tuple[object, ...] | None:
        rows = self._chunk_rows(file_id)
        best: tuple[int, tuple[object, ...]] | None = None
        for row in rows:
            if not self._narrowing.chunk_fits(row[3], row[4]):
                continue
            held = len({mark.term for mark in marks if row[6] <= mark.line <= row[7]})
            if best is None or held > best[0]:
                best = (held, row)
        return None if best is None else best[1]

    def _chunk_rows(self, file_id: int) -> list[tuple[Any, ...]]:
        sql = (
            f"SELECT {_COLUMNS} FROM chunk c CROSS JOIN file f ON f.id = c.file WHERE c.file = ? ORDER BY c.start_byte"
        )
        return self._connection.execute(sql, (file_id,)).fetchall()

    # literals and patterns

    def from_matches(self, matches: list[FileMatch], literal: str | None, need: int) -> list[Candidate]:
        """Chunks that hold the matches of a scan, ranked. `literal` is what was looked for, if it was no pattern.

        Files are ranked first and their chunks then, in blocks of files, until there are enough.
        """
        asked = frozenset[str]() if literal is None else rank.name_parts(literal)
        found: list[Candidate] = []
        ordered = matches if self._narrowing.narrows_chunks else self._most_promising(matches, literal)
        block = len(ordered) if self._narrowing.narrows_chunks else FILE_BLOCK
        for at in range(0, len(ordered), max(1, block)):
            chunks = [c for match in ordered[at : at + block] for c in self._chunks_of(match, literal, asked)]
            found += sorted(chunks, key=lambda c: c.order)
            if len(found) >= need:
                break
        return found

    def _most_promising(self, matches: list[FileMatch], literal: str | None) -> list[FileMatch]:
        """Files that define what is looked for, then by number of matches, place and age."""
        if len(matches) <= FILE_BLOCK:
            return matches
        defining: set[int] = set()
        for name in [] if literal is None else dict.fromkeys(re.findall(r"\w+", literal)):
            defining.update(
                row[0]
                for row in self._connection.execute(
                    "SELECT file FROM chunk WHERE name = ? COLLATE NOCASE AND name <> '' LIMIT 200", (name,)
                )
            )
        ids = json.dumps([match.file for match in matches])
        sql = "SELECT id, path, mtime_ns FROM file WHERE id IN (SELECT value FROM json_each(?))"
        weights = {}
        for file_id, path, mtime in self._connection.execute(sql, (ids,)):
            weights[file_id] = rank.place_factor(path) * rank.recency_factor(self._now - mtime / 1e9)
        return sorted(
            matches,
            key=lambda m: (m.file not in defining, -weights.get(m.file, 0.0) * rank.count_base(m.count), m.file),
        )

    def _chunks_of(self, match: FileMatch, literal: str | None, asked: frozenset[str]) -> list[Candidate]:
        cuts = self._connection.execute(
            "SELECT start_byte, id FROM chunk WHERE file = ? ORDER BY start_byte", (match.file,)
        ).fetchall()
        starts = [start for start, _ in cuts]
        by_chunk: dict[int, list[tuple[int, int]]] = {}
        for start, end in match.spans:
            at = bisect_right(starts, start) - 1
            if at >= 0:
                by_chunk.setdefault(cuts[at][1], []).append((start, end))
        sql = f"SELECT {_COLUMNS} FROM chunk c CROSS JOIN file f ON f.id = c.file WHERE c.id = ?"
        found: list[Candidate] = []
        for chunk_id, spans in by_chunk.items():
            row = self._connection.execute(sql, (chunk_id,)).fetchone()
            _, uid, file_id, kind, name, scope, first, last, start_byte, _, path, lang, source, mtime = row
            if not self._narrowing.chunk_fits(kind, name):
                continue
            data = self.text(file_id)
            whole = _is_whole(data, spans[0])
            defines = bool(name) and _defines(data, start_byte, spans[0], name)
            age = self._now - mtime / 1e9
            score = rank.score_found(len(spans), kind, name, path, age, asked, whole, defines)
            facts = {"source": source, "path": path, "lang": lang, "kind": kind, "name": name, "scope": scope}
            found.append(Candidate(chunk_id, uid, "file", score, facts, file_id, (first, last), spans, len(spans)))
        return found

    # on the wire

    def render(self, candidate: Candidate, terms: list[Term], context: int, *, explain: bool) -> JsonObject:
        data = self.text(candidate.file)
        lines = data.decode("utf-8", "replace").split("\n")
        if lines and not lines[-1]:
            lines.pop()
        if candidate.spans:
            marks = mark_spans(data, candidate.spans)
        else:
            marks = self._term_marks(candidate, terms)
        first, last = candidate.lines
        facts = candidate.facts
        hit: JsonObject = {
            "id": encode_id("f", candidate.uid),
            "source": facts["source"],
            "path": facts["path"],
            "startLine": first,
            "endLine": last,
            "lang": facts["lang"],
            "kind": facts["kind"],
            "name": facts["name"] or None,
            "scope": facts["scope"] or None,
            "score": round(candidate.score.value, 3),
            "matchCount": candidate.count or len(marks),
            "snippet": make_snippet(lines, first - 1, last - 1, marks, context),
        }
        if explain:
            hit["explain"] = candidate.score.explain()
        return hit


def spread_out(ranked: list[Candidate]) -> None:
    """Lower what repeats: the same name in the same file much, the same file a little. Keeps the list sorted."""
    names: dict[tuple[str, str], int] = {}
    paths: dict[str, int] = {}
    for candidate in ranked:
        path, name = candidate.facts["path"], candidate.facts["name"]
        again = names.get((path, name), 0) if name else 0
        others = paths.get(path, 0)
        if again or others:
            candidate.score.factors["again"] = max(0.3, 0.7**again * 0.95**others)
        names[path, name] = again + 1
        paths[path] = others + 1
    ranked.sort(key=lambda c: c.order)


def _is_whole(data: bytes, span: tuple[int, int]) -> bool:
    start, end = span
    before, after = data[start - 1 : start], data[end : end + 1]
    return not (before.isalnum() or before == b"_") and not (after.isalnum() or after == b"_")


def _defines(data: bytes, chunk_start: int, span: tuple[int, int], name: str) -> bool:
    """Whether the match lies on the line that gives the chunk its name, and touches the name."""
    line_start = data.rfind(b"\n", 0, span[0]) + 1
    line_end = data.find(b"\n", span[1])
    line = data[line_start : len(data) if line_end < 0 else line_end]
    last = fold(name.rpartition(".")[2]).encode()
    matched = data[span[0] : span[1]].lower()
    if last not in line.lower() or not (last in matched or matched in last):
        return False
    return data.count(b"\n", chunk_start, span[0]) < 12


def deadline_guard(connection: sqlite3.Connection, deadline: float) -> None:
    """Make long statements on `connection` stop after `deadline` (they raise OperationalError: interrupted)."""
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 50_000)
