"""`wsh mcp` where no server runs: one is started, serves, outlives nothing it should not, and is replaced when killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.mcp.host import StdioHost, structured
from tests.support.serving import find_processes
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


@pytest.fixture
def alone(places: Places, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    monkeypatch.setenv("WSH_SERVER_EPHEMERAL_LINGER_S", "0")
    monkeypatch.setenv("WSH_SERVER_BIND", "127.0.0.1:0")
    yield places
    for process in find_processes(places):
        process.kill()


def find_server(places: Places) -> int:
    return int(json.loads(places.runtime_info.read_text())["pid"])


def test_a_server_is_started_used_and_gone_with_its_last_client(alone: Places) -> None:
    with StdioHost() as host:
        host.initialize()
        name = structured(host.call("wsh_create_session", {"command": "bash --norc"}))["session"]
        arguments = {"session": name, "input": "echo alone", "format": "plain"}
        assert structured(host.call("wsh_run_command", arguments))["output"] == "alone"
        with StdioHost() as second:
            second.initialize()
            listed = structured(second.call("wsh_list_sessions"))["sessions"]
            assert [entry["name"] for entry in listed] == [name], "the second joins the same server"
    wait_until(lambda: not find_processes(alone), what="the end of server, keeper and shell")


def test_killing_the_pump_ends_the_server_too(alone: Places) -> None:
    with StdioHost() as host:
        host.initialize()
        structured(host.call("wsh_list_sessions"))
        host.process.kill()
        host.process.wait()
    wait_until(lambda: not find_processes(alone), what="the end of the server")


def test_a_server_killed_under_the_pump_is_replaced_and_its_sessions_are_still_there(alone: Places) -> None:
    with StdioHost() as host:
        host.initialize()
        name = structured(host.call("wsh_create_session", {"command": "bash --norc"}))["session"]
        structured(host.call("wsh_run_command", {"session": name, "input": "kept=yes"}))
        os.kill(find_server(alone), signal.SIGKILL)
        arguments = {"session": name, "input": "echo $kept", "format": "plain"}
        answer = host.call("wsh_run_command", arguments)
        if "error" in answer:  # it was under way when the end was noticed
            assert answer["error"]["code"] == -32000
            answer = host.call("wsh_run_command", arguments)
        assert structured(answer)["output"] == "yes"
