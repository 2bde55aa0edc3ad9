"""The surface is what was committed: no definition, code or deadline changes in silence."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from tests.support.mcp import snapshot
from tests.support.mcp.host import HttpHost
from tests.support.mcp.live import live_server


def test_the_surface_is_the_committed_one(tmp_path: Path) -> None:
    with live_server(tmp_path) as server, HttpHost(f"{server.url}/mcp", server.token) as host:
        host.initialize()
        now = snapshot.take(host)
    committed = json.loads(snapshot.FILE.read_text())
    unraised = snapshot.list_unraised(committed, now)
    assert not unraised, f"these changed while their schemaVersion did not rise: {unraised}"
    assert now == committed, "run `python -m tests.support.mcp.snapshot`"
    assert snapshot.PAGE.read_text() == snapshot.render(now), "run `python -m tests.support.mcp.snapshot`"


def test_a_change_without_a_rise_is_noticed_and_a_clearer_text_is_none() -> None:
    before = json.loads(snapshot.FILE.read_text())
    after = copy.deepcopy(before)
    tool = after["tools"]["wsh_run_command"]
    tool["description"] = "clearer"
    assert snapshot.list_unraised(before, after) == []
    tool["inputSchema"]["properties"]["timeout_ms"]["default"] = 1
    assert snapshot.list_unraised(before, after) == ["wsh_run_command"]
    tool["schemaVersion"] += 1
    assert snapshot.list_unraised(before, after) == []
    del after["tools"]["search"]
    assert snapshot.list_unraised(before, after) == ["search"]
