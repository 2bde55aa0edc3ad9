"""What `wsh mcp` answers in place of a server that is starting is what the server would have said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.mcp.host import StdioHost
from tests.support.serving import running_server
from wsh.wire.json.handshake import TOOLSETS, make_answer
from wsh.wire.system.place import Places

CLIENT = {"name": "raw-test", "version": "1"}
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def test_it_is_the_servers_own_answer(places: Places) -> None:
    cases = [(revision, "") for revision in REVISIONS] + [(REVISIONS[-1], toolset) for toolset in TOOLSETS]
    with running_server(places):
        for revision, toolset in cases:
            with StdioHost(args=("--toolsets", toolset) if toolset else ()) as host:
                told = host.initialize(revision)["result"]
            params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT}
            assert make_answer(params, [toolset] if toolset else TOOLSETS) == told


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": CLIENT},
        {"protocolVersion": "2025-11-25", "capabilities": {}},
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}},
        {"protocolVersion": "2025-11-25", "capabilities": {"roots": 5}, "clientInfo": CLIENT},
        {"protocolVersion": "2025-11-25", "clientInfo": CLIENT},
    ],
)
def test_what_is_unusual_is_left_to_the_server(params: dict[str, Any]) -> None:
    assert make_answer(params, TOOLSETS) is None
