"""`wsh mcp` and a real server under what goes wrong: huge arguments, cancels, clients and servers that vanish."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.mcp.host import StdioHost, failure, structured
from tests.support.mcp.live import set_folders
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import find_places


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No server runs at first: the pumps start one, and start it again when it is gone."""
    with pytest.MonkeyPatch.context() as patch:
        set_folders(tmp_path_factory.mktemp("hostile"), patch)
        yield
        run_warm([sys.executable, "-m", "wsh.cli.main", "stop"], check=True)
        log = Path(find_places().server_log).read_text()
        assert "Traceback" not in log, f"the log of the server tells of a fault: {log[-3000:]}"


@pytest.fixture(params=["legacy", "modern"])
def host(request: pytest.FixtureRequest) -> Iterator[StdioHost]:
    modern = request.param == "modern"
    with StdioHost(cwd="/", env={"ALLOWED_COMMANDS": "sleep,echo"}, modern=modern) as opened:
        if not modern:
            opened.initialize()
        yield opened


def _open(host: StdioHost) -> str:
    name: str = structured(host.call("wsh_create_session", {"command": "bash --norc"}))["session"]
    return name


def _find(command: list[str]) -> list[int]:
    return [p.pid for p in psutil.process_iter() if _command(p) == command]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_ten_megabytes_are_answered_by_every_family_and_the_connection_lives_on(host: StdioHost) -> None:
    big = "x" * 10_000_000
    session = _open(host)
    assert (
        failure(host.call("wsh_send_input", {"session": session, "input": big}))["reason"] == "resource_limit_reached"
    )
    assert host.call("wsh_get_screen", {"session": big})["error"]["code"] == -32602
    assert host.call("wsh_list_sessions", {big: 1})["error"]["code"] == -32602
    assert host.call(big)["error"]["code"] == -32602
    assert failure(host.call("execute_command", {"command": f"echo {big}"}))["code"] == "INVALID_REQUEST"
    assert failure(host.call("search", {"query": big}))["code"] == "INVALID_REQUEST"
    how = {"mode": "headless", "intent": "execute_command"}
    asked = {"action": "execute", "invocation": how, "execution": {"command": big}}
    assert failure(host.call("memory_terminal_interactive", asked))["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
    host.send_raw(b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 40_000_000 + b'"}\n')
    assert host.receive()["error"]["code"] == -32600
    assert session in json.dumps(structured(host.call("wsh_list_sessions")))


@pytest.mark.parametrize("as_request", [False, True])
def test_a_cancelled_command_is_answered_once_and_its_process_is_dead(host: StdioHost, as_request: bool) -> None:
    command = ["sleep", f"{4000 + os.getpid() % 1000 + as_request}"]
    id = host.start_request("tools/call", {"name": "execute_command", "arguments": {"command": " ".join(command)}})
    wait_until(lambda: _find(command) != [], what="the command")
    answered: list[Any] = []
    if as_request:
        host.start_request("$/cancelRequest", {"id": str(id)}, id="cancel")
    else:
        host.notify("$/cancelRequest", {"id": str(id)})
    while id not in answered:
        message = host.receive()
        if "method" not in message:
            answered.append(message["id"])
            if message["id"] == id:
                assert failure(message)["code"] == "CANCELLED"
                assert _find(command) == [], "the answer came before the end of the work"
    assert sorted(map(str, answered)) == sorted([str(id), *(["cancel"] if as_request else [])])
    structured(host.call("wsh_list_sessions"))


def test_the_next_request_works_when_the_server_was_killed_and_sessions_are_still_there(host: StdioHost) -> None:
    session = _open(host)
    run = {"session": session, "input": "sleep 1; echo out''lived", "max_wait_ms": 60_000}
    id = host.start_request("tools/call", {"name": "wsh_run_command", "arguments": run})
    # Typed once it is on the screen; a server killed earlier would take the keys with it, as is said.
    wait_until(
        lambda: "sleep 1" in json.dumps(host.call("wsh_get_screen", {"session": session})), what="the typed line"
    )
    pid = json.loads(find_places().runtime_info.read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    answer = host.wait_answer(id)
    assert answer["error"]["code"] == -32000 and "went away" in answer["error"]["message"]
    wait = {"session": session, "text": "outlived", "generation": 0, "max_wait_ms": 60_000}
    assert structured(host.call("wsh_await_quiesce", wait))["ended_by"] == "text"
    assert json.loads(find_places().runtime_info.read_text())["pid"] != pid
    structured(host.call("wsh_manage_session", {"session": session, "action": "kill"}))


def test_a_session_that_is_meant_unnamed_is_the_same_after_the_server_was_killed() -> None:
    with StdioHost(args=["--toolsets", "lean"], cwd="/") as host:
        host.initialize()

        def say(tool: str, **arguments: str) -> str:
            return str(host.call(tool, arguments)["result"]["content"][0]["text"])

        first = say("run", command="cd /usr; word=kept")
        assert "in your new session" in first
        os.kill(json.loads(find_places().runtime_info.read_text())["pid"], signal.SIGKILL)
        assert say("run", command="echo $PWD $word") == "/usr kept\n[exit 0]"
        assert "(yours)" in say("sessions")
        say("sessions", action="close")


def test_a_request_that_a_dying_server_never_read_is_answered_by_the_next(host: StdioHost) -> None:
    session = _open(host)
    pid = json.loads(find_places().runtime_info.read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)
    for _ in range(2):
        # The first is not the last that was sent: what became of it is not known.
        host.start_request("tools/call", {"name": "wsh_list_sessions", "arguments": {"session": session}})
    last = host.start_request("tools/call", {"name": "wsh_create_session", "arguments": {"command": "cat"}}, id="last")
    time.sleep(0.2)  # the pump hands over; nothing can tell when, for nobody reads
    os.kill(pid, signal.SIGKILL)
    made = structured(host.wait_answer(last, timeout=60))
    before = [m for m in host.seen if "error" in m]
    assert [m["error"]["code"] for m in before] == [-32000, -32000]
    names = [entry["name"] for entry in structured(host.call("wsh_list_sessions"))["sessions"]]
    assert session in names and names.count(made["session"]) == 1


def test_a_host_that_is_killed_takes_its_calls_with_it_and_nothing_else(host: StdioHost) -> None:
    command = ["sleep", f"{6000 + os.getpid() % 1000}"]
    session = _open(host)
    host.start_request("tools/call", {"name": "execute_command", "arguments": {"command": " ".join(command)}})
    wait_until(lambda: _find(command) != [], what="the command")
    with StdioHost() as other:
        other.initialize()
        host.process.kill()
        host.process.wait(HANG_S)
        wait_until(lambda: _find(command) == [], what="the end of what the host had started")
        assert structured(other.call("wsh_list_sessions", {"session": session}))["running"] is True


def test_notifications_are_never_answered(host: StdioHost) -> None:
    for method in ("no/such", "tools/call", "notifications/cancelled", "$/cancelRequest", "notifications/progress"):
        host.notify(method, {"requestId": "nothing", "id": None})
        for params in ("[]", '"text"', "5", "null"):
            host.send_raw(f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}\n'.encode())
    structured(host.call("wsh_list_sessions"))
    assert [m for m in host.seen if m.get("method") != "notifications/resources/list_changed"] == []
