"""The database of an index: its tables, opening it, checking it.

A whole build writes new files and moves a pointer to them (`folder`); an incremental one is a single WAL transaction on
the current file. Either way a builder that dies leaves the old index as it was. A database is never renamed over
another, because a write-ahead log that stayed behind would be applied to a database it does not belong to.

Full-text tables hold no text: the texts lie in a flat file (`text`), and a document is taken out of the tables by
giving its words again (`word.word_row`, `word.gram_text`), which therefore must not change without a new `FORMAT`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from wsh.wire.json.object import JsonObject
from wsh.wire.system.shortage import is_refused_write
from wsh.workspace.error import IndexBroken

FORMAT = 5
APPLICATION_ID = 0x77736869  # "wshi"
INDEXED = ("code", "prose")

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, source TEXT NOT NULL, lang TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, indexed_ns INTEGER NOT NULL, skip TEXT, sha256 TEXT, encoding TEXT, lines INTEGER,
  text_start INTEGER, text_stored INTEGER, text_size INTEGER NOT NULL DEFAULT 0, text_crc INTEGER, text_ascii INTEGER);
CREATE TABLE chunk(
  id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, file INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  scope TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, start_byte INTEGER NOT NULL,
  end_byte INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
  name, scope, body, humps, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE grams USING fts5(pieces, content='', tokenize='trigram', detail=none);
"""
INDEXES = (
    "CREATE INDEX chunk_by_file ON chunk(file)",
    "CREATE INDEX chunk_by_uid ON chunk(uid)",
    "CREATE INDEX chunk_by_name ON chunk(name COLLATE NOCASE) WHERE name <> ''",
)


def create(path: Path, root: str, text_name: str) -> sqlite3.Connection:
    """A new, empty index file, tuned for filling it once. It becomes an index when published."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
        f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};" + SCHEMA
    )
    # While it is filled, segments are merged seldom; `settle` makes one of them, and updates merge as usual.
    _configure(connection, automerge=0, crisismerge=64)
    set_meta(connection, root=root, commits=0, text=text_name, text_end=0)
    return connection


def _configure(connection: sqlite3.Connection, **options: int) -> None:
    for table in ("words", "grams"):
        for option, value in options.items():
            connection.execute(f"INSERT INTO {table}({table}, rank) VALUES (?, ?)", (option, value))


def settle(connection: sqlite3.Connection) -> None:
    """The last step of filling, within the transaction: indexes, and full text as searches and updates want it."""
    for statement in INDEXES:
        connection.execute(statement)
    # One segment each: searches read less, and no update has to merge those of the build, which would leave a tenth of the file empty.
    connection.execute("INSERT INTO words(words) VALUES ('optimize')")
    connection.execute("INSERT INTO grams(grams) VALUES ('optimize')")
    _configure(connection, automerge=4, crisismerge=16)


def finish(connection: sqlite3.Connection) -> None:
    """Close a file that was filled. From here on it is written through a log; a reader that opens it finds that settled."""
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


def empty_log(connection: sqlite3.Connection) -> None:
    """Write what an update left in the log into the file and give its space back, unless somebody reads just now."""
    connection.execute("PRAGMA busy_timeout=0")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def open_index(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """The index file, checked. Raises IndexBroken when it is corrupt or of another format."""
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION_ID:
                raise IndexBroken("corrupt", "not an index of wsh")
            if found != FORMAT:
                raise IndexBroken("version", f"format {found}, this program writes {FORMAT}")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA cache_size=-32768")
            if not write:
                connection.execute("PRAGMA query_only=1")
            connection.execute("SELECT value FROM meta WHERE key = 'commits'").fetchone()[0]
        except BaseException:
            connection.close()
            raise
    except (sqlite3.DatabaseError, TypeError) as problem:
        if isinstance(problem, sqlite3.OperationalError) and "locked" in str(problem):
            raise
        raise IndexBroken("corrupt", str(problem)) from None
    return connection


def set_meta(connection: sqlite3.Connection, **values: object) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)",
        [(key, json.dumps(value)) for key, value in values.items()],
    )


def get_meta(connection: sqlite3.Connection) -> JsonObject:
    try:
        return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    except (sqlite3.DatabaseError, ValueError) as problem:
        raise IndexBroken("corrupt", str(problem)) from None


def is_corruption(problem: BaseException) -> bool:
    """Whether a database error means that the file is damaged, rather than busy or interrupted."""
    if isinstance(problem, IndexBroken):
        return True
    if not isinstance(problem, sqlite3.DatabaseError) or is_refused_write(problem):
        return False
    text = str(problem)
    marks = ("malformed", "not a database", "no such table", "corrupt", "vtable constructor failed", "disk I/O error")
    return any(mark in text for mark in marks)
