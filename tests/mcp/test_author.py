"""Two connections of one client's name are two authors: neither goes on with the other's half line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mcp.host import failure, structured
from tests.support.mcp.live import live_server, open_host


@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_the_line_of_another_connection_is_in_use(tmp_path: Path, kind: str) -> None:
    with live_server(tmp_path) as server, open_host(server, kind) as mine, open_host(server, kind) as other:
        name = structured(mine.call("wsh_create_session", {"command": "bash --norc"}))["session"]
        structured(mine.call("wsh_run_command", {"session": name, "input": "true"}))
        structured(mine.call("wsh_send_input", {"session": name, "input": "echo mi"}))
        for tool in ("wsh_send_input", "wsh_run_command"):
            refused = failure(other.call(tool, {"session": name, "input": "xyz"}))
            assert (refused["code"], refused["text"], refused["own"]) == ("LINE_IN_USE", "echo mi", False)
        structured(mine.call("wsh_send_input", {"session": name, "input": "ne\r"}))
        ended = {"session": name, "text": "mine", "until": ["command"], "max_wait_ms": 60_000}
        structured(mine.call("wsh_await_quiesce", ended))
        ran = structured(other.call("wsh_run_command", {"session": name, "input": "echo free"}))
        assert ran["output"] == "free"
