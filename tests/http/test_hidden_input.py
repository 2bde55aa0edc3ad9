"""An agent's typing at a prompt that hides what is typed: a person is asked, over every door, and the text is kept nowhere."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.test_secret import call_mcp
from tests.support.bridge.program import running_desktop
from tests.support.http.talk import talk
from tests.support.mcp.host import StdioHost
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places, find_places
from wsh.wire.token_file import TokenFile

SECRET = "tr0ub4dor-and-3"
PROMPT = 'sh -c \'stty -echo; printf "pass phrase: "; read x; stty echo; echo; echo "got ${#x}"; sleep 600\''
QUICK = {"WSH_APPROVALS_HIDDEN_WAIT_MS": "60000"}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("hidden")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        yield find_places()


@pytest.fixture(scope="module")
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places, environ=QUICK, check_left=False) as running:
        yield running


@pytest.fixture(scope="module")
def agent(server: RunningServer) -> str:
    return TokenFile(server.places.tokens).add_agent("worker")


def open_prompt(server: RunningServer, name: str) -> str:
    assert server.request("POST", "/sessions", {"name": name, "command": PROMPT}).status == 201
    wait_until(lambda: server.get(f"/sessions/{name}")["state"] == "hidden", f"{name} to ask")
    return f"/sessions/{name}"


def screen(server: RunningServer, path: str) -> str:
    return "\n".join(server.get(f"{path}/screen?format=plain")["lines"])


class Call(threading.Thread):
    """A request of the agent's that waits for its answer."""

    def __init__(self, server: RunningServer, path: str, body: Any, token: str) -> None:
        super().__init__(daemon=True)
        self._words = (server, path, body, token)
        self.start()

    def run(self) -> None:
        server, path, body, token = self._words
        self.answer = server.request("POST", path, body, token=token, timeout=150)

    def result(self) -> Any:
        self.join(120)
        return self.answer


def waiting(server: RunningServer, session: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def look() -> bool:
        asked = server.get("/approvals")["requests"]
        found[:] = [one for one in asked if one["session"] == session and one["state"] == "waiting" and one["digest"]]
        return bool(found)

    wait_until(look, f"a request about {session}", seen=lambda: server.get("/approvals"))
    return found[0]


def answer(server: RunningServer, one: dict[str, Any], decision: str, **more: Any) -> Any:
    body = {"digest": one["digest"], "decision": decision, **more}
    return server.request("POST", f"/approvals/{one['id']}", body)


def test_a_yes_types_it_once_and_nothing_keeps_the_text(server: RunningServer, agent: str, places: Places) -> None:
    path = open_prompt(server, "allowed")
    call = Call(server, f"{path}/input", f"{SECRET}\r".encode(), agent)
    one = waiting(server, "allowed")
    assert (one["kind"], one["place"], one["answerable"]) == ("hidden", "server", True)
    assert f"{len(SECRET)} characters, not shown" in one["command"] and "pass phrase:" in one["command"]
    inbox = [entry for entry in server.get("/inbox")["items"] if entry["session"] == "allowed"]
    assert [(entry["kind"], entry["request_id"]) for entry in inbox] == [("request", one["id"])]
    assert SECRET not in json.dumps([one, inbox])
    assert "got" not in screen(server, path)
    assert answer(server, one, "approve", scope="session").status == 400  # once, and no further
    assert answer(server, one, "approve").json["state"] == "approved"
    assert call.result().status == 204
    wait_until(lambda: f"got {len(SECRET)}" in screen(server, path), "the program to have read it")
    kept = [file for folder in (places.state, places.runtime, places.config) for file in Path(folder).rglob("*")]
    assert not [file for file in kept if file.is_file() and SECRET.encode() in file.read_bytes()]
    audit = (places.state / "audit.jsonl").read_text()
    assert '"hidden_input"' in audit and '"typed"' in audit


def test_a_no_is_told_with_its_reason_and_nothing_is_typed(server: RunningServer, agent: str) -> None:
    path = open_prompt(server, "declined")
    call = Call(server, f"{path}/run", {"input": SECRET}, agent)
    assert answer(server, waiting(server, "declined"), "decline", reason="not yours").json["state"] == "declined"
    refused = call.result()
    assert (refused.status, refused.code) == (409, "hidden_prompt")
    error = refused.json["error"]
    assert error["details"]["outcome"] == "declined" and "not yours" in error["message"]
    assert "got" not in screen(server, path)


def test_a_person_who_types_it_themselves_ends_the_request(server: RunningServer, agent: str) -> None:
    path = open_prompt(server, "myself")
    call = Call(server, f"{path}/input", f"{SECRET}\r".encode(), agent)
    waiting(server, "myself")
    assert server.request("POST", f"{path}/input", b"mine\r").status == 204
    assert call.result().json["error"]["details"]["outcome"] == "answered"
    wait_until(lambda: "got 4" in screen(server, path), "the person's own answer")
    assert not [
        one for one in server.get("/approvals")["requests"] if (one["session"], one["state"]) == ("myself", "waiting")
    ]


def test_an_answer_that_comes_late_is_told_to_the_same_call_again(server: RunningServer, agent: str) -> None:
    path = open_prompt(server, "later")
    first = server.request("POST", f"{path}/run", {"input": SECRET, "max_wait_ms": 300}, token=agent)
    assert first.json["error"]["details"]["outcome"] == "pending"
    one = waiting(server, "later")
    assert first.json["error"]["details"]["approval_id"] == one["id"]
    assert answer(server, one, "approve").json["state"] == "approved"
    wait_until(lambda: f"got {len(SECRET)}" in screen(server, path), "the text to be typed")
    again = server.request("POST", f"{path}/run", {"input": SECRET, "max_wait_ms": 60_000}, token=agent)
    assert again.status in (200, 408)  # what came of it, within the first call's own time
    assert screen(server, path).count("got") == 1
    assert SECRET not in screen(server, path)


def test_leaving_the_prompt_needs_nobody_and_neither_does_a_person(server: RunningServer, agent: str) -> None:
    path = open_prompt(server, "left")
    assert server.request("POST", f"{path}/input", b"\x03", token=agent).status == 204
    wait_until(lambda: not server.get(path)["running"], "Ctrl+C to end it")


def test_the_command_line_shows_and_answers_it(server: RunningServer, agent: str) -> None:
    path = open_prompt(server, "shell")
    call = Call(server, f"{path}/input", f"{SECRET}\r".encode(), agent)
    one = waiting(server, "shell")

    def wsh(*words: str) -> str:
        command = [sys.executable, "-m", "wsh.cli.main", "approvals", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    shown = wsh("show", one["id"])
    assert "Type at a hidden prompt" in shown and "pass phrase:" in shown and SECRET not in shown
    assert "Approved" in wsh("approve", one["id"])
    assert call.result().status == 204


def test_a_model_is_told_what_became_of_it(server: RunningServer) -> None:
    open_prompt(server, "model")
    (told,) = call_mcp(server, ("wsh_run_command", {"session": "model", "input": SECRET, "max_wait_ms": 300}))
    assert (told["code"], told["reason"], told["outcome"]) == ("FORBIDDEN", "hidden_prompt", "pending")
    # Its connection has ended, and the request with it.
    wait_until(
        lambda: (
            [one["state"] for one in server.get("/approvals")["requests"] if one["session"] == "model"] == ["withdrawn"]
        ),
        "the request to be taken back",
        seen=lambda: server.get("/approvals"),
    )


def test_a_websocket_and_the_lean_tools_ask_the_person_as_well(server: RunningServer, agent: str) -> None:
    path = open_prompt(server, "socket")
    with talk(server, "/ws/json", token=agent) as socket:
        number = socket.send("send_input", {"data": f"{SECRET}\r"}, session="socket")
        assert answer(server, waiting(server, "socket"), "approve").json["state"] == "approved"
        assert "result" in socket.answer(number)
    wait_until(lambda: f"got {len(SECRET)}" in screen(server, path), "the text to be typed")
    path = open_prompt(server, "lean")
    with StdioHost(args=("--toolsets", "lean")) as host:
        host.initialize()
        number = host.start_request(
            "tools/call", {"name": "type", "arguments": {"session": "lean", "text": f"{SECRET}\r"}}
        )
        assert answer(server, waiting(server, "lean"), "decline", reason="not yours").json["state"] == "declined"
        told = host.wait_answer(number)["result"]
    assert told["isError"] and "not yours" in told["content"][0]["text"] and SECRET not in json.dumps(told)
    assert "got" not in screen(server, path)


def test_the_window_is_asked_where_one_is_connected(server: RunningServer, agent: str, places: Places) -> None:
    path = open_prompt(server, "window")
    with running_desktop(places.desktop_info, "approve"):
        typed = server.request("POST", f"{path}/input", f"{SECRET}\r".encode(), token=agent, timeout=150)
    assert typed.status == 204, typed
    wait_until(lambda: f"got {len(SECRET)}" in screen(server, path), "the text to be typed")
    one = next(one for one in server.get("/approvals")["requests"] if one["session"] == "window")
    assert (one["state"], one["where"], one["place"]) == ("approved", "window", "server")
