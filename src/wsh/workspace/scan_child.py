"""The process in which regular expressions run, because only a process can be stopped in the middle of one.

Requests and answers are JSON lines on stdin and stdout. It serves one request after another until stdin closes, and
keeps its connections open between them.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from wsh.workspace import store
from wsh.workspace.error import IndexBroken
from wsh.workspace.filter import Filter
from wsh.workspace.pattern import compile_pattern
from wsh.workspace.scan import scan
from wsh.workspace.transcript import TranscriptFilter, scan_transcripts

_open: dict[str, sqlite3.Connection] = {}


def _connection(path: str, *, index: bool) -> sqlite3.Connection:
    found = _open.get(path)
    if found is None:
        for other in _open.values():
            other.close()
        _open.clear()
        found = store.open_index(Path(path)) if index else sqlite3.connect(path, isolation_level=None)
        _open[path] = found
    return found


def answer(request: dict[str, Any]) -> dict[str, Any]:
    pattern = compile_pattern(request["pattern"])
    deadline = time.monotonic() + request["seconds"]
    if request["kind"] == "transcripts":
        narrowing = TranscriptFilter(**_tuples(request["filter"]))
        connection = _connection(request["path"], index=False)
        return {"transcripts": scan_transcripts(connection, pattern, request["fts"], narrowing, deadline)}
    files = Filter(**_tuples(request["filter"]))
    part = (request["part"][0], request["part"][1])
    result = scan(_connection(request["path"], index=True), pattern, request["fts"], files, deadline, part)
    return {
        "files": [[match.file, match.count, match.spans] for match in result.files],
        "candidates": result.candidates,
        "complete": result.complete,
    }


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        try:
            reply = answer(json.loads(line))
        except TimeoutError:
            reply = {"late": True}
        except IndexBroken as problem:
            reply = {"broken": problem.reason, "detail": problem.message}
        except sqlite3.DatabaseError as problem:
            reply = {"broken": "corrupt", "detail": str(problem)}
        data = json.dumps(reply).encode() + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
