"""The process in which literals and regular expressions are looked for; it can be killed at any instant.

Requests and answers are JSON lines on stdin and stdout. It serves one request after another until stdin closes, and
keeps the index open between them.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

from wsh.wire.json.object import JsonObject
from wsh.workspace.error import IndexBroken
from wsh.workspace.index import store
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.scan import KeptTexts, LiteralMatcher, Needle, PatternMatcher, scan
from wsh.workspace.transcript.transcript import TranscriptFilter, scan_transcripts


class _Open:
    """The databases and texts of the last request of each kind."""

    def __init__(self) -> None:
        self._connections: dict[str, tuple[tuple[str, int], sqlite3.Connection]] = {}
        self._replaced: list[sqlite3.Connection] = []
        self._texts: KeptTexts | None = None

    def connection(self, kind: str, path: str) -> sqlite3.Connection:
        try:
            file = (path, os.stat(path).st_ino)
        except FileNotFoundError:
            raise IndexBroken("corrupt", "it is gone") from None
        found = self._connections.get(kind)
        if found is not None and found[0] == file:
            return found[1]
        if found is not None:
            del self._connections[kind]
            if found[0][0] == path:
                # A damaged store was replaced. To close this would remove the log of the one that has its name now.
                self._replaced.append(found[1])
            else:
                found[1].close()
        if kind == "files":
            connection = store.open_index(Path(path))
        else:
            connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        self._connections[kind] = (file, connection)
        return connection

    def texts(self, path: Path) -> KeptTexts:
        if self._texts is None or self._texts.path != path:
            if self._texts is not None:
                self._texts.close()
                self._texts = None
            self._texts = KeptTexts(path)
        return self._texts


_open = _Open()


def answer(request: JsonObject) -> JsonObject:
    needle: Needle = (
        LiteralMatcher(request["query"]) if request["match"] == "literal" else PatternMatcher(request["query"])
    )
    deadline = time.monotonic() + request["seconds"]
    connection = _open.connection(request["kind"], request["path"])
    connection.execute("BEGIN")
    try:
        if request["kind"] == "transcripts":
            narrowing = TranscriptFilter(**_tuples(request["filter"]))
            return {"transcripts": scan_transcripts(connection, needle, request["fts"], narrowing, deadline)}
        texts = _open.texts(Path(request["path"]).parent / store.get_meta(connection)["text"])
        files = Filter(**_tuples(request["filter"]))
        part = (request["part"][0], request["part"][1])
        result = scan(connection, texts, needle, request["fts"], files, deadline, part)
    finally:
        connection.execute("ROLLBACK")
    return {
        "files": [[match.file, match.count, match.spans] for match in result.files],
        "candidates": result.candidates,
        "complete": result.complete,
    }


def _tuples(fields: JsonObject) -> JsonObject:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Thousands of spans are made for an answer, and none refers to another: the collector would go through all of them for nothing.
    gc.disable()
    for line in sys.stdin.buffer:
        try:
            reply = answer(json.loads(line))
        except TimeoutError:
            reply = {"late": True}
        except IndexBroken as problem:
            reply = {"broken": problem.reason, "detail": problem.message}
        except sqlite3.DatabaseError as problem:
            reply = {"broken": "corrupt" if store.is_corruption(problem) else "database", "detail": str(problem)}
        data = memoryview(json.dumps(reply).encode() + b"\n")
        while data:
            data = data[os.write(1, data) :]
        gc.collect(0)  # what an error may have left, when nobody waits


if __name__ == "__main__":
    main()
