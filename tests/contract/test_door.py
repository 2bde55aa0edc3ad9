"""The contract through a whole server: MCP on stdio and HTTP, `POST /terminal`, and a desktop found by its runtime file."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapters.test_adapter import gone
from tests.support.bridge.scripted import ScriptedDesktop, approve, decline, ignore, listening
from tests.support.contract.world import HEADLESS, INTERACTIVE
from tests.support.mcp.host import StdioHost
from tests.support.mcp.live import live_server
from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from wsh.approval.answer import Pending
from wsh.bridge.endpoint import Endpoint, remove_endpoint, write_endpoint

TOOL = "memory_terminal_interactive"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with live_server(tmp_path_factory.mktemp("contract")) as running:
        yield running


@contextmanager
def desktop(server: RunningServer, script: Callable[[Pending], object]) -> Iterator[ScriptedDesktop]:
    """A scripted desktop on a loop of its own, announced to the server."""
    scripted = ScriptedDesktop(script=script, cwd="/")
    ready, stop = threading.Event(), threading.Event()
    found: list[Endpoint] = []

    async def serve() -> None:
        async with listening(scripted) as (_, endpoint):
            found.append(endpoint)
            ready.set()
            await asyncio.get_running_loop().run_in_executor(None, stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    write_endpoint(server.places.desktop_info, found[0])
    try:
        yield scripted
    finally:
        remove_endpoint(server.places.desktop_info, found[0])
        stop.set()
        thread.join(60)


@contextmanager
def host(folder: Path, **environ: str) -> Iterator[StdioHost]:
    with StdioHost(cwd=str(folder), env=environ) as stdio:
        stdio.initialize()
        yield stdio


def execute(command: str, invocation: dict[str, Any] = INTERACTIVE, **more: Any) -> dict[str, Any]:
    return {"action": "execute", "invocation": invocation, "execution": {"command": command}, **more}


def payload(message: dict[str, Any]) -> dict[str, Any]:
    result = message["result"]
    answer: dict[str, Any] = json.loads(result["content"][0]["text"])
    if "error" in answer:
        assert result.get("isError", False) is (answer["error"] is not None)
        assert answer == result["structuredContent"]
    return answer


def test_one_trace_id_goes_from_the_caller_to_the_window_the_frames_the_audit_and_the_log(
    server: RunningServer, tmp_path: Path
) -> None:
    trace = "trace_01JWHOLEWAY"
    with desktop(server, approve) as window, host(tmp_path, PM_INTERACTIVE_TERMINAL_TRACE_BRIDGE="1") as stdio:
        answer = payload(stdio.call(TOOL, execute("echo seen", correlation={"trace_id": trace})))
        assert answer["success"] and answer["result"]["stdout"] == "seen\n"
        assert answer["correlation"]["trace_id"] == trace
        assert window.arrived[0].request.trace_id == window.orders[0].trace_id == trace
    log = server.output.read_text()
    frames = [line for line in log.splitlines() if "wsh.bridge.trace" in line and trace in line]
    for kind in ("hello", "ready", "request", "decision", "output", "exit"):
        assert any(f'"type":"{kind}"' in frame for frame in frames), kind
    audit = [json.loads(line) for line in server.places.audit_log.read_text().splitlines()]
    assert [entry["kind"] for entry in audit if entry["trace_id"] == trace] == ["decision", "approval", "result"]


def test_a_request_cancelled_by_its_client_is_withdrawn_and_answered_once(
    server: RunningServer, tmp_path: Path
) -> None:
    with desktop(server, ignore) as window, host(tmp_path) as stdio:
        number = stdio.start_request("tools/call", {"name": TOOL, "arguments": execute("true")})
        wait_until(lambda: window.arrived, "the card")
        stdio.notify("$/cancelRequest", {"id": str(number)})
        message = stdio.wait_answer(number)
        assert message["result"]["isError"] is True and payload(message)["code"] == "CANCELLED"
        wait_until(lambda: window.closed, "the card to go")
        assert window.closed[0][1] == "withdrawn" and window.arrived[0].approve() is False
        assert payload(stdio.call(TOOL, {"action": "list"}))["result"]["items"] == []
        assert not [message for message in stdio.seen if message.get("id") == number], "one answer"


def test_a_client_that_vanishes_takes_its_card_along(server: RunningServer, tmp_path: Path) -> None:
    with desktop(server, ignore) as window:
        with host(tmp_path) as stdio:
            stdio.start_request("tools/call", {"name": TOOL, "arguments": execute("true")})
            wait_until(lambda: window.arrived, "the card")
            stdio.process.kill()
            wait_until(lambda: window.closed, "the card to go")
        assert window.closed[0][1] == "withdrawn" and window.arrived[0].approve() is False
        assert window.orders == []


def test_a_cancelled_headless_command_dies_with_its_tree(server: RunningServer, tmp_path: Path) -> None:
    policy = server.places.policy_file
    policy.write_text('[headless]\nallow = ["sh *"]\n')
    policy.chmod(0o600)
    try:
        with host(tmp_path) as stdio:
            arguments = execute("sh", HEADLESS)
            arguments["execution"]["args"] = ["-c", "sleep 1000 & mkdir pid-$! pid-$$; wait"]
            number = stdio.start_request("tools/call", {"name": TOOL, "arguments": arguments})
            wait_until(lambda: len(list(tmp_path.glob("pid-*"))) == 2, "the command")
            stdio.notify("$/cancelRequest", {"id": number})
            assert payload(stdio.wait_answer(number))["code"] == "CANCELLED"
            assert all(gone(int(path.name[4:])) for path in tmp_path.glob("pid-*"))
    finally:
        policy.unlink()


def test_http_callers_have_the_same_contract_and_their_own_identities(server: RunningServer, tmp_path: Path) -> None:
    policy = server.places.policy_file
    policy.write_text('[headless]\nallow = ["echo *", "sleep *"]\n')
    policy.chmod(0o600)
    try:
        with host(tmp_path) as stdio:
            reply = server.request("POST", "/terminal", execute("echo over http", HEADLESS))
            assert reply.status == 200 and reply.json["result"]["stdout"] == "over http\n"
            slow = server.request("POST", "/terminal", execute("sleep 30", HEADLESS, runtime={"timeout_ms": 1}))
            assert slow.status == 202 and slow.json["status"] == "accepted"
            follow = {"action": "read_output", "target": slow.json["identity"]}
            assert payload(stdio.call(TOOL, follow))["error"]["code"] == "PM_TERM_NOT_FOUND"
            ended = server.request("POST", "/terminal", {"action": "terminate", "target": slow.json["identity"]})
            assert ended.status == 200 and ended.json["result"]["terminated"] is True
        for body, status in [
            ({"action": "dance"}, 400),
            ([], 400),
            ({"action": "read_output", "target": {"session_id": "x"}}, 404),
            (execute("rm -rf /", HEADLESS), 403),
        ]:
            reply = server.request("POST", "/terminal", body)
            assert reply.status == status and reply.json["error"]["code"].startswith("PM_TERM_"), reply
        assert server.request("POST", "/terminal", {"action": "list"}, token=None).status == 401
    finally:
        policy.unlink()


def test_the_connections_own_variables_govern_it(server: RunningServer, tmp_path: Path) -> None:
    with host(tmp_path, PM_RUNNING_IN_CONTAINER="true") as stdio:
        answer = payload(stdio.call(TOOL, execute("ls")))
        assert answer["error"]["code"] == "PM_TERM_INVALID_MODE"
        assert answer["error"]["details"]["missing"] == ["PM_INTERACTIVE_TERMINAL_TOKEN"]
    with host(tmp_path, PM_INTERACTIVE_TERMINAL_BINARY="relative/path") as stdio:
        assert payload(stdio.call(TOOL, execute("ls")))["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
    with host(tmp_path, WSH_ALIAS_STAGE="strict") as stdio:
        assert (
            payload(stdio.call(TOOL, {"action": "run", "command": "ls"}))["error"]["code"] == "PM_TERM_INVALID_ACTION"
        )
        listed = {tool["name"] for tool in stdio.request("tools/list")["result"]["tools"]}
        assert TOOL in listed and not listed & {"memory_terminal", "memory_terminal_vscode"}
    with host(tmp_path, WSH_ALIAS_STAGE="warn") as stdio:
        answer = payload(stdio.call("memory_terminal", {"action": "run", "command": "wget x"}))
        assert answer["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE" and answer["compat"]["deprecation"]
    with host(tmp_path) as stdio:
        where = payload(stdio.call(TOOL, execute("pwd", HEADLESS)))
        assert where["result"]["stdout"] == f"{os.path.realpath(tmp_path)}\n"


def test_a_decline_reaches_the_client_with_its_reason(server: RunningServer, tmp_path: Path) -> None:
    with desktop(server, decline), host(tmp_path) as stdio:
        answer = payload(stdio.call(TOOL, execute("git push")))
        assert answer["error"]["code"] == "PM_TERM_DECLINED" and answer["error"]["details"]["reason"] == "not today"
