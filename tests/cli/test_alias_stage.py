"""A stage of the legacy aliases that is none: a server does not start with it, and a connection is warned of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.mcp.host import StdioHost, structured
from tests.support.mcp.live import live_server
from wsh.wire.system.place import Places


def test_a_server_does_not_start_with_a_stage_that_is_none(places: Places) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wsh.cli.main", "server"],
        env={**os.environ, "WSH_ALIAS_STAGE": "sometimes"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "WSH_ALIAS_STAGE must be one of compat, warn, strict, not 'sometimes'" in done.stderr


def test_a_connection_with_such_a_stage_is_strict_and_check_status_says_so(tmp_path: Path) -> None:
    with live_server(tmp_path), StdioHost(env={"WSH_ALIAS_STAGE": "sometimes"}) as host:
        host.initialize()
        warnings = structured(host.call("check_status", {}))["warnings"]
        assert [entry["code"] for entry in warnings if entry["code"] == "ALIAS_STAGE"] == ["ALIAS_STAGE"]
        names = {tool["name"] for tool in host.request("tools/list")["result"]["tools"]}
        assert "memory_terminal" not in names and "memory_terminal_interactive" in names
