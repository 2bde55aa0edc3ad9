"""What one file becomes in the index: computed by workers, written by the builder.

`prepare` runs in worker processes and touches no database; `write` and `remove` run in the builder's transaction.
A `Prepared` is a plain tuple of plain values, so that it crosses the pipe by `marshal`.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from typing import Any, TypeAlias

from wsh.workspace.file.chunk import cut
from wsh.workspace.file.language import language_of, source_of
from wsh.workspace.file.source import Skipped, read_source
from wsh.workspace.index.text import TextPlace, TextReader, TextWriter
from wsh.workspace.search.word import gram_text, word_row

# (path, source, lang, size, mtime_ns, indexed_ns, skip, sha256, encoding, lines, data, grams, chunks)
# A chunk is (uid, kind, name, scope, start_line, end_line, start_byte, end_byte, name words, scope words, hump words).
Prepared: TypeAlias = tuple[Any, ...]

SKIP = 6
DATA = 10
GRAMS = 11
CHUNKS = 12


def prepare(root: str, path: str, max_bytes: int, known_sha256: str | None, *, parse: bool = True) -> Prepared:
    """Read and cut one file. With `known_sha256` equal to the file's, only its stat is given (no chunks: None)."""
    lang = language_of(path)
    source = source_of(lang)
    now = time.time_ns()
    text = read_source(os.path.join(root, path), max_bytes)
    head = (path, source, lang, text.size, text.mtime_ns, now)
    if isinstance(text, Skipped):
        return (*head, text.reason, None, None, 0, b"", "", [])
    if text.sha256 == known_sha256:
        return (*head, None, text.sha256, text.encoding, 0, b"", "", None)
    data = text.data
    chunks: list[tuple[object, ...]] = []
    seen: dict[int, int] = {}
    key = path_key(path)
    for c in cut(data, lang, parse=parse):
        body = data[c.start_byte : c.end_byte]
        uid = chunk_uid(key, body, seen)
        words = word_row(path, c.name, c.scope, body)
        chunks.append((uid, c.kind, c.name, c.scope, c.start_line, c.end_line, c.start_byte, c.end_byte, *words))
    lines = chunks[-1][5] if chunks else 0
    return (*head, None, text.sha256, text.encoding, lines, data, gram_text(data), chunks)


def path_key(path: str) -> bytes:
    return hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=32).digest()


def chunk_uid(key: bytes, text: bytes, seen: dict[int, int]) -> int:
    """A number that stays as long as path (by its key) and text do; `seen` tells equal chunks of a file apart."""
    base = int.from_bytes(hashlib.blake2b(text, key=key, digest_size=8).digest(), "big", signed=True)
    count = seen.get(base, 0)
    seen[base] = count + 1
    return base if count == 0 else chunk_uid(key, f"{base}:{count}".encode(), {})


def write(connection: sqlite3.Connection, texts: TextWriter, prepared: Prepared, file_id: int, chunk_id: int) -> int:
    """Insert a file under ids that are free; returns the next free chunk id."""
    insert = "INSERT INTO file VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
    if prepared[SKIP] is not None:
        connection.execute(insert, (file_id, *prepared[:DATA], None, None, 0, None, None))
        return chunk_id
    data, chunks = prepared[DATA], prepared[CHUNKS]
    place = texts.append(data)
    where = (place.start, place.stored, place.size, place.crc)
    connection.execute(insert, (file_id, *prepared[:DATA], *where, data.isascii()))
    connection.execute("INSERT INTO grams(rowid, pieces) VALUES (?,?)", (file_id, prepared[GRAMS]))
    rows = [(chunk_id + n, file_id, c) for n, c in enumerate(chunks)]
    connection.executemany(
        "INSERT INTO chunk VALUES (?,?,?,?,?,?,?,?,?,?)", [(row, c[0], file, *c[1:8]) for row, file, c in rows]
    )
    connection.executemany(
        "INSERT INTO words(rowid, name, scope, body, humps) VALUES (?,?,?,?,?)",
        [(row, c[8], c[9], data[c[6] : c[7]].decode("utf-8", "replace"), c[10]) for row, _, c in rows],
    )
    return chunk_id + len(chunks)


def touch(connection: sqlite3.Connection, file_id: int, prepared: Prepared) -> None:
    """The file is the same; only its stat was new."""
    connection.execute(
        "UPDATE file SET size = ?, mtime_ns = ?, indexed_ns = ? WHERE id = ?",
        (prepared[3], prepared[4], prepared[5], file_id),
    )


def remove(connection: sqlite3.Connection, texts: TextReader, file_id: int) -> None:
    """Take a file out of every table; the full-text tables are told its words again."""
    path, *place = connection.execute(
        "SELECT path, text_start, text_stored, text_size, text_crc FROM file WHERE id = ?", (file_id,)
    ).fetchone()
    if place[0] is not None:
        data = texts.read(TextPlace(*place))
        gone = []
        for chunk_id, name, scope, first, end in connection.execute(
            "SELECT id, name, scope, start_byte, end_byte FROM chunk WHERE file = ?", (file_id,)
        ):
            body = data[first:end]
            name_words, scope_words, humps = word_row(path, name, scope, body)
            gone.append((chunk_id, name_words, scope_words, body.decode("utf-8", "replace"), humps))
        connection.executemany(
            "INSERT INTO words(words, rowid, name, scope, body, humps) VALUES ('delete',?,?,?,?,?)", gone
        )
        connection.execute("INSERT INTO grams(grams, rowid, pieces) VALUES ('delete',?,?)", (file_id, gram_text(data)))
        connection.execute("DELETE FROM chunk WHERE file = ?", (file_id,))
    connection.execute("DELETE FROM file WHERE id = ?", (file_id,))
