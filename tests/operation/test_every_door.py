"""Every operation through every door that shows it: one scenario, and who may."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.http.talk import talk
from tests.support.mcp.host import HttpHost
from tests.support.operation.door import Door, HttpDoor, Json, McpDoor, Refusal, WebSocketDoor
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.http.ws.methods import METHODS
from wsh.mcp.tool.all import list_tools
from wsh.operation.catalog import list_operations
from wsh.wire.setting import load
from wsh.wire.system.place import find_places

OPERATIONS = list_operations()
_numbers = itertools.count(1)

SPANS = [{"text": "hello", "id": "a"}]
OVERLAY = {"x": 0, "y": 0, "width": 10, "height": 1, "spans": SPANS, "focusable": True}
PANEL = {"position": "bottom", "height": 1, "spans": SPANS}


def _of(kind: str, made: Json) -> list[tuple[str, Callable[[Json], Json]]]:
    def one(seen: Json, **more: Any) -> Json:
        return {"id": seen[f"create_{kind}"]["id"], **more}

    return [
        (f"create_{kind}", lambda seen: made),
        (f"list_{kind}s", lambda seen: {}),
        (f"get_{kind}", one),
        (f"update_{kind}", lambda seen: one(seen, spans=SPANS)),
        (f"patch_{kind}", lambda seen: one(seen, z=3)),
        (f"update_{kind}_spans", lambda seen: one(seen, spans=[{"text": "other", "id": "a"}])),
        (f"{kind}_region_write", lambda seen: one(seen, writes=[{"row": 0, "col": 0, "text": "x"}])),
    ]


def _nothing(seen: Json) -> Json:
    return {}


SCENARIO: list[tuple[str, Callable[[Json], Json]]] = [
    ("get_server_info", _nothing),
    ("get_server_mode", _nothing),
    ("set_server_mode", lambda seen: {"persistent": True}),
    ("create_session", lambda seen: {"name": seen["session"], "command": "bash --norc --noprofile", "tags": ["door"]}),
    ("list_sessions", _nothing),
    ("get_session", _nothing),
    ("update_session", lambda seen: {"name": seen["session"]}),
    ("resize", lambda seen: {"rows": 30, "cols": 100}),
    ("run_command", lambda seen: {"input": "echo first-$((1+1))", "timeout_ms": 500, "format": "plain"}),
    ("list_commands", _nothing),
    ("get_command", lambda seen: {"id": seen["list_commands"][0]["id"]}),
    ("get_command_output", lambda seen: {"id": seen["list_commands"][0]["id"], "limit": 10}),
    ("get_state", _nothing),
    ("send_input", lambda seen: {"data": "echo second-$((1+1))\r"}),
    ("await_idle", lambda seen: {"text": "second-2", "last_generation": 1, "max_wait_ms": 60_000}),
    ("await_state", lambda seen: {"timeout_ms": 50, "max_wait_ms": 60_000}),
    ("send_keys", lambda seen: {"keys": ["enter"]}),
    ("await_any_idle", lambda seen: {"timeout_ms": 50, "max_wait_ms": 60_000, "tag": "door"}),
    ("get_screen", lambda seen: {"format": "styled"}),
    ("get_scrollback", lambda seen: {"limit": 20, "format": "plain"}),
    ("get_screenshot_svg", lambda seen: {"theme": "light"}),
    ("get_screenshot_png", _nothing),
    ("get_recording", lambda seen: {"format": "asciicast-v2"}),
    *_of("overlay", OVERLAY),
    *_of("panel", PANEL),
    ("batch_update", lambda seen: {"id": seen["create_panel"]["id"], "type": "panel", "spans": SPANS}),
    ("get_input_mode", _nothing),
    ("capture_input", _nothing),
    ("focus", lambda seen: {"id": seen["create_overlay"]["id"]}),
    ("get_focus", _nothing),
    ("unfocus", _nothing),
    ("release_input", _nothing),
    ("ask_keys", lambda seen: {"unfocus": True}),
    ("delete_overlay", lambda seen: {"id": seen["create_overlay"]["id"]}),
    ("delete_panel", lambda seen: {"id": seen["create_panel"]["id"]}),
    ("clear_overlays", _nothing),
    ("clear_panels", _nothing),
    ("get_screen_mode", _nothing),
    ("enter_alt_screen", _nothing),
    ("exit_alt_screen", _nothing),
    ("take_over", _nothing),
    ("hand_back", _nothing),
    ("get_policy", _nothing),
    ("get_audit", lambda seen: {"limit": 5}),
    ("list_clients", _nothing),
    ("get_fleet", _nothing),
    ("join_fleet", lambda seen: {"url": "nats://127.0.0.1:1", "credentials": "/nowhere"}),
    ("leave_fleet", _nothing),
    ("list_hosts", _nothing),
    ("add_host", lambda seen: {"host": seen["host"], "target": "nobody.invalid"}),
    ("remove_host", lambda seen: {"host": seen["host"]}),
    ("list_approvals", _nothing),
    ("get_approval", lambda seen: {"id": "none"}),
    ("get_approval_mode", _nothing),
    ("set_approval_mode", lambda seen: {"server": False}),
    ("answer_approval", lambda seen: {"id": "none", "digest": "x", "decision": "decline"}),
    ("judge_hook", lambda seen: {"client": "codex", "command": "ls", "cwd": "/"}),
    ("ask_hook", lambda seen: {"client": "codex", "command": "touch x", "cwd": "/", "wait_ms": 10}),
    ("list_inbox", lambda seen: {"all": True}),
    ("mark_inbox", lambda seen: {"id": "none", "action": "done"}),
    ("set_wake", lambda seen: {"when": seen["session"], "line": "true"}),
    ("list_wakes", _nothing),
    ("cancel_wake", lambda seen: {"id": seen.get("set_wake", {"id": "none"})["id"]}),
    ("list_notices", lambda seen: {"limit": 5}),
    ("get_notice_rules", _nothing),
    ("set_notice_rules", lambda seen: {"rules": None}),
    ("test_notice", lambda seen: {"channel": "page"}),
    ("get_push_key", _nothing),
    ("list_subscriptions", _nothing),
    ("subscribe_push", lambda seen: {"endpoint": "http://x.example/", "keys": {"p256dh": "B", "auth": "A"}}),
    ("unsubscribe_push", lambda seen: {"id": "none"}),
    ("call_terminal", lambda seen: {"request": {"action": "list"}}),
    ("call_workspace", lambda seen: {"tool": "check_status", "arguments": {}}),
    ("execute_command", lambda seen: {"command": "true"}),
    ("export_index", lambda seen: {"workspace": seen["folder"], "file": f"{seen['folder']}/none.tar"}),
    ("import_index", lambda seen: {"workspace": seen["folder"], "file": f"{seen['folder']}/none.tar"}),
    ("detach_session", _nothing),
    ("kill_session", _nothing),
]
REFUSED = {
    "answer_approval": {"forbidden"},
    "get_approval": {"approval_not_found"},
    "mark_inbox": {"not_found"},
    "subscribe_push": {"invalid_request"},
    "unsubscribe_push": {"not_found"},
    "join_fleet": {"invalid_request"},
    "execute_command": {"FORBIDDEN"},
    "export_index": {"conflict", "not_found"},
    "import_index": {"not_found"},
}
"""What needs more than this scenario has: a waiting request, a list of allowed programs, an index. Their own tests have that."""
APART = {"stop_server", "leave_host", "call_tool"}
"""One ends the server; the others are for one server to another, and their doors are those of `tests/host`."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("doors")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        with running_server(find_places()) as running:
            yield running
            assert "Traceback" not in running.output.read_text()


def test_the_scenario_has_every_operation_and_every_operation_a_door() -> None:
    assert {name for name, _ in SCENARIO} | APART == set(OPERATIONS)


def run_scenario(doors: list[Door], seen: Json, refused: dict[str, set[str]] = REFUSED) -> dict[str, str]:
    """The scenario: each operation at the first of the doors that shows it. Says which door took which."""
    taken: dict[str, str] = {}
    for name, make in SCENARIO:
        operation = OPERATIONS[name]
        door = next(door for door in doors if door.shows(operation))
        taken[name] = door.name
        if name in refused:
            with pytest.raises(Refusal, match="|".join(refused[name])):
                door.call(operation, seen["session"], make(seen))
        else:
            seen[name] = door.call(operation, seen["session"], make(seen))
        if name == "run_command":
            _wait_for_commands(doors, seen)
    return taken


def _wait_for_commands(doors: list[Door], seen: Json) -> None:
    """The shell has told of the command that ran."""
    listing = OPERATIONS["list_commands"]
    door = next(door for door in doors if door.shows(listing))
    wait_until(lambda: door.call(listing, seen["session"], {}), "a command in the session's list")


def _new(tmp_path: Path) -> Json:
    number = next(_numbers)
    return {"session": f"door{number}", "host": f"host{number}", "folder": str(tmp_path)}


@contextmanager
def speaking_mcp(server: RunningServer) -> Iterator[McpDoor]:
    with HttpHost(f"{server.url}/mcp", server.token) as host:
        host.initialize()
        yield McpDoor(host)


def test_every_operation_of_http(server: RunningServer, tmp_path: Path) -> None:
    with talk(server, "/ws/json") as client, speaking_mcp(server) as mcp:
        taken = run_scenario([HttpDoor(server), WebSocketDoor(client), mcp], _new(tmp_path))
    assert [name for name, door in taken.items() if door != "HTTP"] == [
        "await_state",
        "batch_update",
        "ask_keys",
        "execute_command",
    ]


def test_every_operation_of_the_websocket(server: RunningServer, tmp_path: Path) -> None:
    with talk(server, "/ws/json") as client, speaking_mcp(server) as mcp:
        taken = run_scenario([WebSocketDoor(client), HttpDoor(server), mcp], _new(tmp_path))
    named = {method.operation.name for method in METHODS.values() if method.operation is not None}
    assert {name for name, door in taken.items() if door == "WebSocket"} == named


def test_every_operation_of_mcp(server: RunningServer, tmp_path: Path) -> None:
    with speaking_mcp(server) as mcp, talk(server, "/ws/json") as client:
        taken = run_scenario([mcp, HttpDoor(server), WebSocketDoor(client)], _new(tmp_path))
    called = {
        operation.name for tool in list_tools(load(None, {}), {}) if tool.family != "lean" for operation in tool.calls
    }
    assert {name for name, door in taken.items() if door == "MCP"} == called


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.who == "owner"])
def test_what_is_the_owners_is_refused_to_an_agent_in_every_door(server: RunningServer, name: str, agent: str) -> None:
    operation = OPERATIONS[name]
    params: Json = next(
        (make({"folder": "/", "session": "x", "host": "x"}) for known, make in SCENARIO if known == name), {}
    )
    with talk(server, "/ws/json", agent) as client:
        doors: list[Door] = [HttpDoor(server, agent), WebSocketDoor(client)]
        shown = [door for door in doors if door.shows(operation)]
        for door in shown:
            with pytest.raises(Refusal) as refused:
                door.call(operation, "x", params)
            assert refused.value.code == "forbidden", door.name
        assert shown


@pytest.fixture(scope="module")
def agent(server: RunningServer) -> str:
    from wsh.wire.token_file import TokenFile

    return TokenFile(server.places.tokens).add_agent("tester")
