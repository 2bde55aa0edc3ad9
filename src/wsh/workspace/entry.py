"""What one file becomes in the index: computed by workers, written by the builder.

`prepare` runs in worker processes and touches no database; `write` and `remove` run in the builder's transaction.
A `Prepared` is a plain tuple of plain values, so that it crosses the pipe by `marshal`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import Any, TypeAlias

from wsh.workspace.chunk import cut
from wsh.workspace.language import language_of, source_of
from wsh.workspace.source import Skipped, read_source
from wsh.workspace.store import chunk_uid, pack, path_key, unpack, word_row
from wsh.workspace.word import gram_text

# (path, source, lang, size, mtime_ns, indexed_ns, skip, sha256, encoding, lines, bytes, packed, grams, chunks, words)
Prepared: TypeAlias = tuple[Any, ...]

SKIP = 6
SHA256 = 7
BYTES = 10
CHUNKS = 13


def prepare(root: str, path: str, max_bytes: int, known_sha256: str | None, *, parse: bool = True) -> Prepared:
    """Read and cut one file. With `known_sha256` equal to the file's, only its stat is given (no chunks: None)."""
    lang = language_of(path)
    source = source_of(lang)
    now = time.time_ns()
    text = read_source(os.path.join(root, path), max_bytes)
    if isinstance(text, Skipped):
        return (path, source, lang, text.size, text.mtime_ns, now, text.reason, None, None, 0, 0, b"", "", [], [])
    if text.sha256 == known_sha256:
        same = (text.sha256, text.encoding, 0, len(text.data), b"", "", None, None)
        return (path, source, lang, text.size, text.mtime_ns, now, None, *same)
    data = text.data
    chunks: list[tuple[Any, ...]] = []
    words: list[tuple[str, str, str, str]] = []
    seen: dict[int, int] = {}
    key = path_key(path)
    for c in cut(data, lang, parse=parse):
        body = data[c.start_byte : c.end_byte]
        uid = chunk_uid(key, body, seen)
        chunks.append((uid, c.kind, c.name, c.scope, c.start_line, c.end_line, c.start_byte, c.end_byte))
        words.append(word_row(path, c.name, c.scope, body))
    lines = chunks[-1][5] if chunks else 0
    grams = gram_text(data)
    head = (path, source, lang, text.size, text.mtime_ns, now, None, text.sha256, text.encoding, lines, len(data))
    return (*head, pack(data), grams, chunks, words)


def write(connection: sqlite3.Connection, prepared: Prepared, file_id: int, chunk_id: int) -> int:
    """Insert a file under ids that are free; returns the next free chunk id."""
    chunks, words = prepared[13], prepared[14]
    connection.execute("INSERT INTO file VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (file_id, *prepared[:11]))
    if prepared[SKIP] is not None:
        return chunk_id
    connection.execute("INSERT INTO content VALUES (?,?)", (file_id, prepared[11]))
    connection.execute("INSERT INTO grams(rowid, pieces) VALUES (?,?)", (file_id, prepared[12]))
    connection.executemany(
        "INSERT INTO chunk VALUES (?,?,?,?,?,?,?,?,?,?)",
        [(chunk_id + n, c[0], file_id, *c[1:]) for n, c in enumerate(chunks)],
    )
    connection.executemany(
        "INSERT INTO words(rowid, name, scope, body, humps) VALUES (?,?,?,?,?)",
        [(chunk_id + n, *w) for n, w in enumerate(words)],
    )
    return chunk_id + len(chunks)


def touch(connection: sqlite3.Connection, file_id: int, prepared: Prepared) -> None:
    """The file is the same; only its stat was new."""
    connection.execute(
        "UPDATE file SET size = ?, mtime_ns = ?, indexed_ns = ? WHERE id = ?",
        (prepared[3], prepared[4], prepared[5], file_id),
    )


def remove(connection: sqlite3.Connection, file_id: int, path: str) -> None:
    """Take a file out of every table; the full-text tables are told its words again."""
    row = connection.execute("SELECT packed FROM content WHERE file = ?", (file_id,)).fetchone()
    if row is not None:
        data = unpack(row[0])
        gone = []
        for chunk_id, name, scope, start, end in connection.execute(
            "SELECT id, name, scope, start_byte, end_byte FROM chunk WHERE file = ?", (file_id,)
        ):
            gone.append((chunk_id, *word_row(path, name, scope, data[start:end])))
        connection.executemany(
            "INSERT INTO words(words, rowid, name, scope, body, humps) VALUES ('delete',?,?,?,?,?)", gone
        )
        connection.execute(
            "INSERT INTO grams(grams, rowid, pieces) VALUES ('delete',?,?)",
            (file_id, gram_text(data)),
        )
        connection.execute("DELETE FROM chunk WHERE file = ?", (file_id,))
        connection.execute("DELETE FROM content WHERE file = ?", (file_id,))
    connection.execute("DELETE FROM file WHERE id = ?", (file_id,))
