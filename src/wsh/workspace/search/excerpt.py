"""What a hit stands for, shown: the lines of a chunk where they are now, or those of a transcript.

Knows the index and the store's facts, not how files are read (`show`) or who asks (`service`).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass

from wsh.wire.json.object import JsonObject
from wsh.workspace.error import InvalidArguments
from wsh.workspace.file.show import Wanted, locate, show
from wsh.workspace.index.reader import Index


@dataclass(frozen=True)
class IndexedChunk:
    path: str
    first: int
    last: int
    sha256: str
    text: bytes


def find_chunk(index: Index, uid: int) -> IndexedChunk | None:
    """The chunk that a hit stands for, or None when its text is no longer in the index."""
    row = index.connection.execute(
        "SELECT f.id, f.path, c.start_line, c.end_line, f.sha256, c.start_byte, c.end_byte "
        "FROM chunk c JOIN file f ON f.id = c.file WHERE c.uid = ?",
        (uid,),
    ).fetchone()
    if row is None:
        return None
    file_id, path, first, last, sha256, start, end = row
    return IndexedChunk(path, first, last, sha256, index.read_text(file_id)[start:end])


def show_chunk(
    root: str,
    chunk: IndexedChunk,
    start: int | None,
    end: int | None,
    max_bytes: int,
    stop: threading.Event,
    check: Callable[[str], None],
) -> JsonObject:
    """The lines of a chunk, or those asked for. In a file that has changed, the chunk is looked for where it is now.

    `check` refuses a file as in `show`.
    """

    def wanted(first: int, last: int) -> Wanted:
        return Wanted(start or first, end if end is not None else max(last, start or 0), max_bytes)

    try:
        shown = show(root, chunk.path, wanted(chunk.first, chunk.last), stop, check)
    except InvalidArguments:
        if start is not None:
            raise
        shown = show(root, chunk.path, Wanted(1, end, max_bytes), stop, check)
    if shown["sha256"] == chunk.sha256 or start is not None or end is not None:
        return shown
    moved = locate(root, chunk.path, chunk.text)
    if moved is None:
        return shown
    return show(root, chunk.path, wanted(moved, moved + chunk.last - chunk.first), stop, check)


def find_sha256(connection: sqlite3.Connection, path: str) -> str | None:
    row = connection.execute("SELECT sha256 FROM file WHERE path = ?", (path,)).fetchone()
    return None if row is None else row[0]


def show_transcript(
    root: str, id: str, facts: JsonObject, text: str, start: int, end: int | None, max_bytes: int
) -> JsonObject:
    lines = text.split("\n")
    if start > len(lines):
        raise InvalidArguments(f"startLine {start} is beyond the transcript's {len(lines)} lines.")
    chosen = "\n".join(lines[start - 1 : end])
    data = chosen.encode("utf-8")
    shown = data[:max_bytes].decode("utf-8", "ignore")
    return {
        "workspace": root,
        "id": id,
        "source": "transcript",
        "path": None,
        "size": len(text.encode("utf-8")),
        "lang": None,
        "binary": False,
        "encoding": "utf-8",
        "sha256": None,
        "text": shown,
        "startLine": start,
        "endLine": start + shown.count("\n"),
        "totalLines": len(lines),
        "truncated": len(data) > max_bytes,
        "modifiedAt": None,
        "indexed": True,
        "changedSinceIndex": False,
        "transcript": facts,
    }
