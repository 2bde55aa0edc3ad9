"""The process that builds: a request as JSON on stdin, progress and the result as JSON lines on stdout.

Lines are `{"progress": [phase, done, total]}`, and one last `{"result": …}` or `{"error": …}`. When nobody reads any
more, it ends. It imports as little as it can, because an incremental build is mostly the start of this program.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys

from wsh.wire.system.shortage import find_shortage
from wsh.workspace.error import NoRoom, ToolError
from wsh.workspace.index.build import build, read_request


def _say(message: dict[str, object]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def main() -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    folder = None
    try:
        request = read_request(sys.stdin.buffer.read())
        folder = request.folder
        result = build(request, lambda phase, done, total: _say({"progress": [phase, done, total]}))
    except ToolError as problem:
        _say({"error": problem.to_payload()})
        return 1
    except (OSError, sqlite3.Error) as problem:
        shortage = find_shortage(problem, folder)
        if shortage is None:
            raise
        _say({"error": NoRoom(shortage.message, hint=shortage.hint, **shortage.facts).to_payload()})
        return 1
    _say({"result": result})
    return 0


if __name__ == "__main__":
    sys.exit(main())
