"""`wsh mcp` where no server runs: one is started, serves, outlives nothing it should not, and is replaced when killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

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


HELD = """
import os, sys, time
class Held:
    def find_spec(self, name, path=None, target=None):
        while name == "wsh.mcp.transport.endpoint" and not os.path.exists(os.environ["LET_GO"]):
            time.sleep(0.01)
sys.meta_path.insert(0, Held())
"""
"""For a process that finds this as `sitecustomize`: the MCP door is not imported before a file is there."""


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


def test_the_handshake_is_answered_before_the_new_server_can(alone: Places, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HELD)
    let_go = tmp_path / "let-go"
    with StdioHost(env={"PYTHONPATH": str(tmp_path), "LET_GO": str(let_go)}) as host:
        first = host.initialize()
        asked = host.start_request("tools/list")
        let_go.touch()
        assert "tools" in host.wait_answer(asked)["result"]
        assert host.seen == [], "the server's own answer to the handshake is not passed on"
        with StdioHost() as second:
            assert second.initialize()["result"] == first["result"]


def test_a_server_that_cannot_start_is_told_at_the_handshake(alone: Places) -> None:
    alone.config.mkdir(parents=True, exist_ok=True)
    alone.config_file.write_text("[server]\nno_such_setting = 1\n")
    with StdioHost() as host:
        answer = host.initialize()
        assert answer["error"]["code"] == -32000, answer
        assert "status 2" in answer["error"]["message"]
