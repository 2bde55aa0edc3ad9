"""What a server imports before it listens, and `wsh mcp` before it starts one: all of it is paid for before the first answer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from wsh.wire.system.place import Places

# Each takes as long as a quarter of the interpreter's own start, or longer.
HEAVY = {
    "asyncio", "uvloop", "ssl", "shutil", "concurrent.futures", "multiprocessing", "pydantic", "starlette", "uvicorn", "websockets",
    "anyio", "mcp", "mcp_types", "click", "sqlite3", "cryptography", "tomllib", "secrets", "urllib.request", "wsh.contract.request.model",
    "wsh.policy", "wsh.session", "wsh.terminal", "wsh.workspace", "wsh.operation", "wsh.mcp", "wsh.notice", "wsh.host",
}  # fmt: skip
WATCHED = """
import json, os, sys
from wsh.{module} import {name}
import wsh.{module} as module
def tell(*args, **kwargs):
    os.write(1, json.dumps(sorted(sys.modules)).encode())
    os._exit(0)
module.{name} = tell
sys.argv = ["wsh", *{words!r}]
from wsh.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [("app.boot", "open_doors", ["server", "--ephemeral"]), ("client.launch", "_spawn", ["mcp"])],
)
def test_little_is_imported_before(places: Places, module: str, name: str, words: list[str]) -> None:
    program = WATCHED.format(module=module, name=name, words=words)
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, stdin=subprocess.DEVNULL, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert HEAVY & set(json.loads(done.stdout)) == set()
