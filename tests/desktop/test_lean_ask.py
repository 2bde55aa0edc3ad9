"""The lean tool `ask`, with a person at the real window who approves, edits or declines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.desktop.window import Desk
from tests.support.mcp.host import StdioHost
from tests.support.serving import RunningServer


@pytest.fixture
def agent(server: RunningServer) -> Iterator[StdioHost]:
    with StdioHost(args=["--toolsets", "lean"]) as host:
        host.initialize()
        yield host


def _ask(agent: StdioHost, command: str, cwd: Path) -> int:
    arguments = {"command": command, "cwd": str(cwd)}
    id: int = agent.start_request("tools/call", {"name": "ask", "arguments": arguments})
    return id


def _answer(agent: StdioHost, id: int) -> tuple[bool, str]:
    result = agent.wait_answer(id, 60)["result"]
    assert "structuredContent" not in result
    return bool(result.get("isError")), str(result["content"][0]["text"])


def test_what_is_approved_runs_and_its_output_comes_with_who_approved(
    agent: StdioHost, window: Desk, tmp_path: Path
) -> None:
    id = _ask(agent, "sh -c 'echo approved in $PWD; exit 3'", tmp_path)
    window.wait_for_pending(1)
    window.press("ctrl+Return")
    failed, text = _answer(agent, id)
    assert not failed
    assert f"approved in {tmp_path}" in text
    assert "approved by" in text and "exit 3]" in text


def test_what_is_declined_does_not_run_and_the_agent_is_told_not_to_try_another_way(
    agent: StdioHost, window: Desk, tmp_path: Path
) -> None:
    id = _ask(agent, "touch made", tmp_path)
    window.wait_for_pending(1)
    window.press("ctrl+BackSpace")
    failed, text = _answer(agent, id)
    assert failed and text.startswith("PM_TERM_DECLINED")
    assert "do not try it another way" in text
    assert not (tmp_path / "made").exists()


def test_what_a_person_edits_is_what_the_agent_is_told(agent: StdioHost, window: Desk, tmp_path: Path) -> None:
    id = _ask(agent, "touch asked", tmp_path)
    window.wait_for_pending(1)
    window.press("ctrl+e")
    window.enter("touch instead")
    failed, text = _answer(agent, id)
    assert not failed and "instead" in text and "exit 0]" in text
    assert (tmp_path / "instead").exists() and not (tmp_path / "asked").exists()


def test_long_output_of_an_approved_command_keeps_to_the_budget(agent: StdioHost, window: Desk, tmp_path: Path) -> None:
    arguments = {"command": "seq 20000", "cwd": str(tmp_path), "max_tokens": 500}
    id = agent.start_request("tools/call", {"name": "ask", "arguments": arguments})
    window.wait_for_pending(1)
    window.press("ctrl+Return")
    failed, text = _answer(agent, id)
    assert not failed and len(text) < 4000
    assert text.startswith("1\n2\n") and "left out" in text and "\n20000\n" in text
