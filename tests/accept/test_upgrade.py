"""The whole of version 0.1.0, replaced by this one while twenty sessions live."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import read_answer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places

ROOT = Path(__file__).parents[2]
OLD = "69f0e7b"
SESSIONS = 20


def _ask(places: Places, method: str, path: str, body: object = None) -> Any:
    """One request over the unix socket, which both versions have."""
    data = json.dumps(body).encode() if body is not None else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(places.socket))
        sock.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = read_answer(sock)
    return json.loads(answer.partition(b"\r\n\r\n")[2] or b"null")


def _screens(places: Places) -> dict[str, Any]:
    names = sorted(info["name"] for info in _ask(places, "GET", "/sessions"))
    found = {name: _ask(places, "GET", f"/sessions/{name}/screen?format=styled") for name in names}
    return {name: (screen["lines"], screen["cursor"], screen["total_lines"]) for name, screen in found.items()}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The source of 0.1.0, out of this repository's own history."""
    packed = subprocess.run(["git", "archive", OLD, "src"], cwd=ROOT, capture_output=True, check=False)
    assert packed.returncode == 0, "this test needs the repository's history: git fetch --unshallow"
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as tar:
        tar.extractall(tmp_path / "old", filter="data")
    return tmp_path / "old" / "src"


def test_an_upgrade_keeps_twenty_sessions_with_their_screens(old: Path, places: Places) -> None:
    script = "import sys; sys.path.insert(0, sys.argv.pop(1)); from wsh.cli.main import main; main()"
    command = [sys.executable, "-c", script, str(old), "server", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
    ) as before:
        wait_until(places.runtime_info.exists, what="the old server")
        assert json.loads(places.runtime_info.read_text())["version"] == "0.1.0"
        for n in range(SESSIONS):
            coloured = (
                f"printf '\\033[{31 + n % 6}msession {n}\\033[0m 中文 \\033]0;title {n}\\007\\n'; seq {n * 9}; exec cat"
            )
            assert _ask(places, "POST", "/sessions", {"name": f"s{n:02}", "command": coloured})["name"] == f"s{n:02}"
        wait_until(
            lambda: all(f"session {n}" in str(_ask(places, "GET", f"/sessions/s{n:02}/scrollback?format=plain&limit=1000"))
                        for n in range(SESSIONS)) and _screens(places) == _screens(places),
            what="all that the sessions print",
        )  # fmt: skip
        seen = _screens(places)
        before.terminate()
        assert before.wait(60) == 0
    with running_server(places, check_left=False) as server:
        assert _screens(places) == seen
        info = server.get("/server/info")
        assert info["version"] != "" and len(server.get("/sessions")) == SESSIONS
        for n in range(SESSIONS):
            assert server.request("POST", f"/sessions/s{n:02}/input", b"still here\r").status == 204
        wait_until(lambda: str(_screens(places)).count("still here") == 2 * SESSIONS, what="every session's echo")
