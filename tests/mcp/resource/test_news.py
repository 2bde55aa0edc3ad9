"""Who subscribed to a resource hears when it changes."""

from __future__ import annotations

from pathlib import Path

from tests.support.mcp.host import StdioHost, structured
from tests.support.mcp.live import live_server


def test_a_command_tells_that_it_prints_and_that_it_ended(tmp_path: Path) -> None:
    with live_server(tmp_path), StdioHost(cwd=str(tmp_path)) as host:
        host.initialize()
        session = structured(host.call("wsh_create_session", {"command": "/bin/bash"}))["session"]
        done = structured(host.call("wsh_run_command", {"session": session, "input": "true"}))
        uri = f"wsh://sessions/{session}/commands/{done['command_id'] + 1}"
        assert "result" in host.request("resources/subscribe", {"uri": uri})
        host.seen.clear()
        host.start_request(
            "tools/call", {"name": "wsh_run_command", "arguments": {"session": session, "input": "read x"}}
        )
        told = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
        host.wait_for(lambda m: m == told)
        host.call("wsh_send_input", {"session": session, "input": "word\r"})
        host.wait_for(lambda m: m == told)
