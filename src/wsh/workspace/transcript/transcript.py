"""What terminals printed, as documents that can be searched: one per command.

One SQLite file for all sessions of a user, written by the server alone. A document may be put again under its key
while its command still runs. Nothing that was typed at a hidden prompt gets here, because it is not in the journal.
Documents leave after the days of retention, and long ones keep their beginning and their end.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import zstandard

from wsh.wire.json.object import JsonObject
from wsh.wire.system.place import ensure_private
from wsh.workspace.error import IndexBroken
from wsh.workspace.index.store import is_corruption
from wsh.workspace.search import rank
from wsh.workspace.search.hit import Candidate, encode_id, iso_time
from wsh.workspace.search.linear import Span
from wsh.workspace.search.query import Query, Term, to_fts, wanted_terms
from wsh.workspace.search.scan import Needle, SearchedText
from wsh.workspace.search.snippet import make_snippet, mark_spans, mark_terms
from wsh.workspace.search.word import gram_text, word_row
from wsh.workspace.transcript.render import plain_text

T = TypeVar("T")

FORMAT = 1
APPLICATION_ID = 0x77736874  # "wsht"
MAX_TEXT_BYTES = 512 * 1024
BLOCK = 100

_SCHEMA = """
CREATE TABLE command(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, uid INTEGER NOT NULL, session TEXT NOT NULL,
  command TEXT NOT NULL, cwd TEXT NOT NULL, exit_code INTEGER, started REAL NOT NULL, duration_ms INTEGER,
  truncated INTEGER NOT NULL, lines INTEGER NOT NULL, bytes INTEGER NOT NULL, packed BLOB NOT NULL);
CREATE INDEX command_by_start ON command(started);
CREATE INDEX command_by_uid ON command(uid);
CREATE INDEX command_by_session ON command(session);
CREATE VIRTUAL TABLE words USING fts5(
  name, scope, body, humps, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE grams USING fts5(pieces, content='', tokenize='trigram', detail=none);
"""
_packer = zstandard.ZstdCompressor(level=3, write_checksum=True)
_unpacker = zstandard.ZstdDecompressor()
_COLUMNS = "d.id, d.uid, d.session, d.command, d.cwd, d.exit_code, d.started, d.duration_ms, d.truncated, d.lines"


def pack(data: bytes) -> bytes:
    return _packer.compress(data)


def unpack(packed: bytes) -> bytes:
    try:
        return _unpacker.decompress(packed)
    except zstandard.ZstdError as problem:
        raise IndexBroken("corrupt", str(problem)) from None


_LOG_BYTES = 8 * 1024 * 1024
"""How long the write-ahead log may get beside the file."""
_CACHE_KIB = 256
"""Pages that each connection holds. The system has the file in memory as well, and there is a connection for each thread."""


@dataclass(frozen=True)
class Transcript:
    """One command and what it printed. `key` is unique for ever, such as session id and command number.

    `output` is rendered text; bytes are rendered here. Times are seconds since the epoch; `exit_code` and
    `duration_ms` are None while the command runs, or where they are not known.
    """

    key: str
    session: str
    command: str
    output: str | bytes
    cwd: str
    started: float
    exit_code: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True)
class TranscriptFilter:
    sessions: tuple[str, ...] = ()
    exit_code: int | None = None
    since: float | None = None
    until: float | None = None

    def condition(self) -> tuple[str, list[object]]:
        parts: list[str] = []
        values: list[object] = []
        if self.sessions:
            parts.append(f"d.session IN ({','.join('?' * len(self.sessions))})")
            values += self.sessions
        if self.exit_code is not None:
            parts.append("d.exit_code = ?")
            values.append(self.exit_code)
        if self.since is not None:
            parts.append("d.started + coalesce(d.duration_ms, 0) / 1000.0 >= ?")
            values.append(self.since)
        if self.until is not None:
            parts.append("d.started <= ?")
            values.append(self.until)
        return " AND ".join(parts), values


class TranscriptStore:
    """Documents on disk. Thread-safe: a lock orders writers, each thread of readers has its own connection."""

    def __init__(self, path: Path, retention_days: int) -> None:
        self.path = path
        self._retention_s = retention_days * 86_400.0
        self._began = (time.time(), time.monotonic())
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self.rebuilt: str | None = None  # why the store was made anew, until somebody has said so

    # life

    def close(self) -> None:
        with self._lock:
            for connection in [*self._opened, *([self._writer] if self._writer else [])]:
                connection.close()
            self._opened, self._writer = [], None
            self._readers = threading.local()

    def _open(self) -> sqlite3.Connection:
        """The writer's connection; a file that cannot be used is replaced. The caller holds the lock."""
        if self._writer is not None:
            return self._writer
        ensure_private(self.path.parent)
        try:
            self._writer = self._connect()
        except (sqlite3.DatabaseError, IndexBroken) as problem:
            if isinstance(problem, sqlite3.DatabaseError) and not is_corruption(problem):
                raise
            self._replace(str(problem))
            self._writer = self._connect()
        return self._writer

    def _replace(self, reason: str) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self._readers = threading.local()
        self.rebuilt = reason

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            self.path.chmod(0o600)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
            connection.execute(f"PRAGMA cache_size={-_CACHE_KIB}")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                connection.executescript(
                    f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT}; {_SCHEMA} COMMIT;"
                )
            elif version != FORMAT:
                raise IndexBroken("version", f"format {version}, this program writes {FORMAT}")
            connection.execute("SELECT count(*) FROM command").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def reader(self) -> sqlite3.Connection:
        """This thread's connection for reading."""
        found: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if found is None:
            with self._lock:
                self._open()
                found = self._connect()
                found.execute("PRAGMA query_only=1")
                self._opened.append(found)
                self._readers.connection = found
        return found

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` with this thread's connection. A damaged file is replaced by an empty one, and that is read."""
        readers = self._readers
        try:
            return work(self.reader())
        except (sqlite3.DatabaseError, IndexBroken) as problem:
            if not is_corruption(problem):
                raise
            with self._lock:
                if self._readers is readers:  # else another thread has replaced it
                    self._replace(str(problem))
            return work(self.reader())

    def give_up(self, reason: str) -> None:
        """A reader in another process found it damaged: begin anew."""
        with self._lock:
            self._replace(reason)

    # writing

    def put(self, documents: Iterable[Transcript]) -> int:
        """Insert or replace documents in one transaction; returns how many."""
        rows = [_prepare(document) for document in documents]
        if not rows:
            return 0
        with self._lock:
            try:
                self._put(self._open(), rows)
            except (sqlite3.DatabaseError, IndexBroken) as problem:
                if not is_corruption(problem):
                    raise
                self._replace(str(problem))
                self._put(self._open(), rows)
            self._shorten_log()
        return len(rows)

    def _shorten_log(self) -> None:
        """Move a long write-ahead log into the file. A reader that is still at it puts that off until the next time."""
        try:
            if os.stat(f"{self.path}-wal").st_size > _LOG_BYTES and self._writer is not None:
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (OSError, sqlite3.OperationalError):
            pass

    def _put(self, connection: sqlite3.Connection, rows: list[_Row]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                old = connection.execute("SELECT id FROM command WHERE key = ?", (row.key,)).fetchone()
                if old is not None:
                    _forget(connection, old[0])
                cursor = connection.execute(
                    "INSERT INTO command VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", (old[0] if old else None, *row.columns)
                )
                rowid = cursor.lastrowid
                connection.execute(
                    "INSERT INTO words(rowid, name, scope, body, humps) VALUES (?,?,?,?,?)", (rowid, *row.words)
                )
                connection.execute("INSERT INTO grams(rowid, pieces) VALUES (?,?)", (rowid, row.grams))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk ends it
                connection.execute("ROLLBACK")
            raise

    def expire(self, now: float | None = None) -> int:
        """Forget what is older than the retention; returns how many documents."""
        limit = (self._steady_now() if now is None else now) - self._retention_s
        with self._lock:
            try:
                forgotten = self._forget_before(self._open(), limit)
            except sqlite3.DatabaseError as problem:
                if not is_corruption(problem):
                    raise
                self._replace(str(problem))
                return 0
            self._shorten_log()
        return forgotten

    def _forget_before(self, connection: sqlite3.Connection, limit: float) -> int:
        connection.execute("BEGIN IMMEDIATE")
        try:
            old = [row[0] for row in connection.execute("SELECT id FROM command WHERE started < ?", (limit,))]
            for rowid in old:
                _forget(connection, rowid)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return len(old)

    def _steady_now(self) -> float:
        """The time, as it went on since we began: a clock that jumps ahead must not cost what is stored."""
        began, at = self._began
        return min(time.time(), began + time.monotonic() - at)

    def clear(self) -> int:
        """Forget everything; returns how many documents there were."""
        with self._lock:
            connection = self._open()
            count: int = connection.execute("SELECT count(*) FROM command").fetchone()[0]
            self._replace("")
            self.rebuilt = None
            self._open()
        return count

    # reading

    def exists(self) -> bool:
        return self.path.exists()

    def status(self) -> JsonObject:
        sql = (
            "SELECT count(*), coalesce(sum(bytes), 0), min(started), max(started), count(DISTINCT session) FROM command"
        )
        row = self.read(lambda connection: connection.execute(sql).fetchone())
        size = sum(p.stat().st_size for s in ("", "-wal") if (p := Path(f"{self.path}{s}")).exists())
        return {
            "documents": row[0],
            "textBytes": row[1],
            "sizeBytes": size,
            "oldest": None if row[2] is None else iso_time(row[2]),
            "newest": None if row[3] is None else iso_time(row[3]),
            "sessions": row[4],
        }

    def list_finished(self) -> set[str]:
        """Keys of the documents whose command has ended."""
        sql = "SELECT key FROM command WHERE duration_ms IS NOT NULL"
        return self.read(lambda connection: {row[0] for row in connection.execute(sql)})

    def list_stretches(self) -> set[str]:
        """Keys of the documents that hold a stretch of output, ended or not."""
        sql = "SELECT key FROM command WHERE instr(key, '@')"
        return self.read(lambda connection: {row[0] for row in connection.execute(sql)})

    def find_words(
        self, query: Query, narrowing: TranscriptFilter, need: int, now: float, workspace: str
    ) -> list[Candidate]:
        asked = rank.asked_parts(wanted_terms(query))
        condition, values = narrowing.condition()
        sql = (
            f"SELECT {_COLUMNS}, {rank.BM25.replace('(', '(words, ')} AS score FROM words "
            "CROSS JOIN command d ON d.id = words.rowid WHERE words MATCH ?"
            f"{' AND ' + condition if condition else ''} ORDER BY score, d.started DESC LIMIT ?"
        )
        limit = -(-need // BLOCK) * BLOCK
        rows = self.read(lambda connection: connection.execute(sql, (to_fts(query), *values, limit)).fetchall())
        found: list[Candidate] = []
        for at in range(0, len(rows), BLOCK):
            block = [_candidate(row, rank.Score(1.0 - row[10]), asked, now, workspace) for row in rows[at : at + BLOCK]]
            found += sorted(block, key=lambda c: c.order)
        return found

    def from_matches(self, matches: list[tuple[int, int, list[Span]]], now: float, workspace: str) -> list[Candidate]:
        found: list[Candidate] = []
        sql = f"SELECT {_COLUMNS} FROM command d WHERE d.id = ?"
        rows = self.read(lambda connection: [connection.execute(sql, (id,)).fetchone() for id, _, _ in matches])
        for row, (_, count, spans) in zip(rows, matches, strict=True):
            if row is None:
                continue
            score = rank.score_found(count, "command", "", "", 0.0, frozenset(), False, False)
            candidate = _candidate((*row, 0.0), score, frozenset(), now, workspace)
            candidate.spans, candidate.count = list(map(tuple, spans)), count  # type: ignore[arg-type]  # pairs, by JSON
            found.append(candidate)
        found.sort(key=lambda c: c.order)
        return found

    def find_by_uid(self, uid: int) -> tuple[JsonObject, str] | None:
        """Facts and text of a document, or None."""

        def work(connection: sqlite3.Connection) -> tuple[JsonObject, str] | None:
            sql = f"SELECT {_COLUMNS}, d.packed FROM command d WHERE d.uid = ?"
            row = connection.execute(sql, (uid,)).fetchone()
            return None if row is None else (_facts(row), unpack(row[10]).decode("utf-8", "replace"))

        return self.read(work)

    def render(self, candidate: Candidate, terms: list[Term], context: int, *, explain: bool) -> JsonObject:
        def work(connection: sqlite3.Connection) -> bytes:
            row = connection.execute("SELECT packed FROM command WHERE id = ?", (candidate.row,)).fetchone()
            return b"" if row is None else unpack(row[0])

        data = self.read(work)
        text = data.decode("utf-8", "replace")
        marks = mark_spans(data, candidate.spans) if candidate.spans else mark_terms(text, terms)
        lines = text.split("\n")
        hit: JsonObject = {
            "id": encode_id("t", candidate.uid),
            "source": "transcript",
            "path": None,
            "startLine": 1,
            "endLine": len(lines),
            "lang": None,
            "kind": "command",
            "name": candidate.facts["command"][:200] or None,
            "scope": None,
            "score": round(candidate.score.value, 3),
            "matchCount": candidate.count or len(marks),
            "snippet": make_snippet(lines, 0, len(lines) - 1, marks, context),
            "transcript": {k: v for k, v in candidate.facts.items() if k != "started"},
        }
        if explain:
            hit["explain"] = candidate.score.explain()
        return hit


def scan_transcripts(
    connection: sqlite3.Connection,
    needle: Needle,
    candidates_fts: str | None,
    narrowing: TranscriptFilter,
    deadline: float,
) -> list[tuple[int, int, list[Span]]]:
    """Row, number of matches and spans of each document that has any. Raises TimeoutError past the deadline."""
    condition, values = narrowing.condition()
    where = [condition] if condition else []
    source = "command d"
    if candidates_fts is not None:
        source = "grams CROSS JOIN command d ON d.id = grams.rowid"
        where.insert(0, "grams MATCH ?")
        values = [candidates_fts, *values]
    sql = f"SELECT d.id, d.packed FROM {source}{' WHERE ' + ' AND '.join(where) if where else ''}"
    found = []
    for rowid, packed in connection.execute(sql, values):
        count, spans = needle.find(SearchedText(unpack(packed)))
        if spans:
            found.append((rowid, count, spans))
        if time.monotonic() > deadline:
            raise TimeoutError
    return found


@dataclass(frozen=True)
class _Row:
    key: str
    columns: tuple[object, ...]
    words: tuple[str, str, str, str]
    grams: str


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _prepare(document: Transcript) -> _Row:
    command = _clean(document.command.strip("\n"))
    text, truncated = _document_text(document.output, command)
    data = text.encode("utf-8")
    uid = int.from_bytes(hashlib.blake2b(document.key.encode(), digest_size=8).digest(), "big", signed=True)
    session, cwd = _clean(document.session), _clean(document.cwd)
    columns = (
        document.key,
        uid,
        session,
        command,
        cwd,
        document.exit_code,
        document.started,
        document.duration_ms,
        int(truncated),
        text.count("\n") + 1,
        len(data),
        pack(data),
    )
    return _Row(document.key, columns, _words(session, cwd, command, data), gram_text(data))


def _words(session: str, cwd: str, command: str, data: bytes) -> tuple[str, str, str, str]:
    name, scope, humps = word_row(f"{session} {cwd}", command, "", data)
    return name, scope, data.decode("utf-8", "replace"), humps


def _document_text(output: str | bytes, command: str) -> tuple[str, bool]:
    body = _clean(plain_text(output)).strip("\n")
    truncated = len(body) > MAX_TEXT_BYTES
    if truncated:
        half = MAX_TEXT_BYTES // 2
        head, tail = body[:half], body[-half:]
        head, tail = head[: head.rfind("\n") + 1] or head, tail[tail.find("\n") + 1 :] or tail
        left_out = len(body) - len(head) - len(tail)
        body = f"{head}[… {left_out} characters left out …]\n{tail}"
    return f"$ {command}\n{body}" if command else body, truncated


def _forget(connection: sqlite3.Connection, rowid: int) -> None:
    session, cwd, command, packed = connection.execute(
        "SELECT session, cwd, command, packed FROM command WHERE id = ?", (rowid,)
    ).fetchone()
    data = unpack(packed)
    connection.execute(
        "INSERT INTO words(words, rowid, name, scope, body, humps) VALUES ('delete',?,?,?,?,?)",
        (rowid, *_words(session, cwd, command, data)),
    )
    connection.execute("INSERT INTO grams(grams, rowid, pieces) VALUES ('delete',?,?)", (rowid, gram_text(data)))
    connection.execute("DELETE FROM command WHERE id = ?", (rowid,))


def _facts(row: tuple[Any, ...]) -> JsonObject:
    _, _, session, command, cwd, exit_code, started, duration, truncated, lines = row[:10]
    return {
        "session": session,
        "command": command,
        "cwd": cwd or None,
        "exitCode": exit_code,
        "startedAt": iso_time(started),
        "durationMs": duration,
        "truncated": bool(truncated),
        "lines": lines,
    }


def _candidate(row: tuple[Any, ...], score: rank.Score, asked: frozenset[str], now: float, workspace: str) -> Candidate:
    facts = _facts(row)
    facts["started"] = row[6]
    cwd = row[4]
    here = cwd == workspace or cwd.startswith(workspace.rstrip("/") + "/")
    score.factors |= {
        "name": rank.name_factor(row[3][:100], asked),
        "recency": rank.recency_factor(now - row[6]),
        "here": 1.1 if here else 1.0,
    }
    return Candidate(row[0], row[1], "transcript", score, facts, 0, (1, row[9]))
