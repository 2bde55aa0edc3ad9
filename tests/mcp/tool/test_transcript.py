"""The transcript in the docs is the work of a real agent script, and it still works."""

from __future__ import annotations

from pathlib import Path

from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server
from tests.support.mcp.transcript import PAGE, Agent, work


def test_an_agent_with_nothing_but_mcp_does_its_days_work(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with live_server(tmp_path), StdioHost() as host:
        host.initialize()
        agent = Agent(host)
        done = work(agent, str(tmp_path / "project"))
    assert done == {
        "file": "the cat\nthe dog",
        "prompt": "chosen: y",
        "build": "BUILD-DONE-0",
        "shards": ["END-0"] * 3,
        "visible": [True, True],
    }
    page = PAGE.read_text()
    assert all(line in page for line in "\n".join(agent.lines).splitlines() if line.startswith("## "))
