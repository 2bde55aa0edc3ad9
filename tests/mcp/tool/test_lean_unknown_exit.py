"""What the lean tools say of a session whose end nobody could tell."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server
from tests.support.waiting import wait_until


def test_a_status_that_nobody_could_tell_is_named_unknown(tmp_path: Path) -> None:
    with live_server(tmp_path) as server, StdioHost(args=["--toolsets", "lean"], cwd=str(tmp_path)) as host:
        host.initialize()
        made = server.request("POST", "/sessions", {"name": "lost", "command": "cat"}).json
        keeper = psutil.Process(made["pid"]).parent()
        assert keeper is not None
        keeper.kill()
        wait_until(lambda: not server.get("/sessions/lost")["running"], "the end of the session")
        told = host.call("sessions")["result"]["content"][0]["text"]
    assert "lost: cat" in told and "ended, exit unknown" in told, told
