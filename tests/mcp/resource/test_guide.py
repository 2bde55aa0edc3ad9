"""The nine guides: all there, and every call that they show would be accepted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from wsh import skills
from wsh.mcp.registry import Registry
from wsh.mcp.tool.all import TOOLS
from wsh.operation.context import Rooms

NAMES = [
    "wsh:core",
    "wsh:drive-process",
    "wsh:tui",
    "wsh:multi-session",
    "wsh:agent-orchestration",
    "wsh:monitor",
    "wsh:visual-feedback",
    "wsh:input-capture",
    "wsh:generative-ui",
]
CALL = re.compile(r"^\s*(?:wsh_)?(\w+) (\{.*\})\s*$", re.MULTILINE)
ROOT = Path(__file__).parents[3]


def list_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Calls as MCP spells them."""
    return [(f"wsh_{name}", json.loads(arguments)) for name, arguments in CALL.findall(text)]


def list_published() -> set[str]:
    """The tools that the guides teach. Those of the lean set carry their own texts, and clients of it get no guides."""
    return {tool.name for tool in TOOLS if tool.family != "lean"}


def test_there_are_nine_guides_in_a_fixed_order() -> None:
    assert [guide.name for guide in skills.GUIDES] == NAMES
    assert all(guide.description and guide.title for guide in skills.GUIDES)


@pytest.mark.parametrize("guide", skills.GUIDES, ids=lambda guide: guide.name)
def test_every_call_in_a_guide_fits_its_tool(guide: skills.Guide) -> None:
    registry = Registry(tool.bind(cast(Rooms, None)) for tool in TOOLS)
    calls = list_calls(skills.read_guide(guide))
    assert len(calls) >= 4, "a guide teaches by examples"
    for name, arguments in calls:
        tool = registry.find_tool(name)
        assert tool is not None, name
        assert tool.validator.find_problems(arguments) == [], (name, arguments)


@pytest.mark.parametrize("guide", skills.GUIDES, ids=lambda guide: guide.name)
def test_every_guide_says_what_to_do_when_stuck_and_leaves_the_person_in_charge(guide: skills.Guide) -> None:
    text = skills.read_guide(guide)
    assert "stuck" in text
    assert "person" in text
    assert "curl" not in text and "http://127" not in text


def test_the_core_guide_names_the_tools_and_no_http_recipe() -> None:
    text = skills.read_guide(skills.GUIDES[0])
    for name in ("wsh_create_session", "wsh_run_command", "wsh_send_input", "wsh_await_quiesce", "wsh_get_screen"):
        assert name in text
    assert "curl" not in text and "POST" not in text and "GET " not in text


def test_all_tools_are_taught_somewhere() -> None:
    taught = {name for guide in skills.GUIDES for name, _ in list_calls(skills.read_guide(guide))}
    tools = list_published()
    assert tools <= taught


@pytest.mark.parametrize("guide", skills.GUIDES[1:], ids=lambda guide: guide.name)
def test_a_special_guide_serves_every_protocol_and_has_a_table_of_spellings(guide: skills.Guide) -> None:
    body, table = skills.read_guide(guide).split("## How to say it")
    assert "wsh_" not in body
    for name, _ in list_calls(body):
        assert f"`{name}`" in table, f"{name} is not in the table"
    for row in table.strip().splitlines()[2:]:
        assert row.count("|") == 6, row


def test_the_spellings_are_those_of_the_doors() -> None:
    from wsh.http.route.operation_route import ROUTES
    from wsh.http.ws.methods import METHODS

    tools = list_published()
    paths = {route.path for route in ROUTES}
    assert {entry.mcp for entry in skills.SPELLINGS} == tools
    for entry in skills.SPELLINGS:
        for method in re.findall(r"`(\w+_\w+)`", entry.websocket):
            assert method in METHODS, method
        for path in re.findall(r"[A-Z]+ (…?[/\w]*)", entry.http):
            assert path.replace("…", "/sessions/{name}") in paths, path


def test_the_names_that_documents_give_exist_and_lead_to_ours() -> None:
    for guide in skills.GUIDES:
        there = ROOT / "skills" / "wsh" / guide.file
        assert there.samefile(ROOT / "src" / "wsh" / "skills" / guide.file)
    assert (ROOT / "skills" / "wsh" / "core.md").samefile(ROOT / "docs" / "core-http.md")
    for page, target in (
        ("docs/interactive-terminal-operator-troubleshooting.md", "troubleshooting.md"),
        ("instructions/mcp-usage.instructions.md", "../docs/mcp-usage.md"),
    ):
        text = (ROOT / page).read_text()
        assert f"({target}" in text and (ROOT / page).parent.joinpath(target).is_file()
