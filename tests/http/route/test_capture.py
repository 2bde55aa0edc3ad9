"""Agents that capture a person's keys: not where they could not type, and never what is typed at a hidden prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.http.ws.test_view import look
from tests.support.http.talk import talk
from tests.support.mcp.host import HttpHost, failure, structured
from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from wsh.wire.token_file import TokenFile

Open = Callable[..., str]

SECRET = "tr0ub4dor-and-3"
PROMPT = (
    'sh -c \'read -r before; stty -echo; printf "pass phrase: "; read -r x; stty echo; echo; echo "got ${#x}"; cat\''
)


@pytest.fixture(scope="module")
def agent(server: RunningServer) -> str:
    return TokenFile(server.places.tokens).add_agent("catcher")


@pytest.fixture
def held_agents(server: RunningServer) -> Iterator[None]:
    """Agents get a sandbox while the test runs."""
    server.places.policy_file.write_text('[sandbox]\nagents = "workspace"\n')
    server.places.policy_file.chmod(0o600)
    yield
    server.places.policy_file.unlink()


def capture(server: RunningServer, name: str, token: str) -> Any:
    return server.request("POST", f"/sessions/{name}/input/capture", token=token)


def mode(server: RunningServer, name: str) -> str:
    return str(server.get(f"/sessions/{name}/input/mode")["mode"])


def screen(server: RunningServer, name: str) -> str:
    return "\n".join(server.get(f"/sessions/{name}/screen?format=plain")["lines"])


@pytest.mark.parametrize("way", ["view", "raw"])
def test_keys_at_a_hidden_prompt_go_to_the_program_and_into_no_event(
    server: RunningServer, open_session: Open, agent: str, way: str
) -> None:
    name = open_session(PROMPT)
    raw = f"{server.ws_url}/sessions/{name}/ws/raw"
    person = look(server, name).connection if way == "view" else connect(raw, additional_headers=server.auth)
    with (
        person,
        talk(server, f"/sessions/{name}/ws/json", agent) as listener,
        HttpHost(f"{server.url}/mcp", agent) as host,
    ):
        host.initialize()
        listener.ask("subscribe", {"events": ["input"]})
        asked = structured(host.call("wsh_input_mode", {"session": name, "mode": "capture"}))
        assert asked["captured_by_you"]
        person.send(b"a")
        assert listener.event("input")["key"] == "a", "before the prompt it is captured"
        server.request("POST", f"/sessions/{name}/input", b"go\r")
        wait_until(lambda: server.get(f"/sessions/{name}")["state"] == "hidden", "the prompt")
        person.send(f"{SECRET}\r".encode())
        wait_until(lambda: f"got {len(SECRET)}" in screen(server, name), "the program to have read it")
        person.send(b"z")
        assert listener.event("input")["key"] == "z", "behind the prompt it is captured again"
        seen = structured(host.call("wsh_input_mode", {"session": name}))
        assert [event["key"] for event in seen["events"]] == ["a", "z"]
        assert not [event for event in listener.events if event["event"] == "input"]


def test_an_agent_captures_nothing_while_a_person_has_taken_over(
    server: RunningServer, open_session: Open, agent: str
) -> None:
    name = open_session("cat")
    assert capture(server, name, agent).status == 204
    assert server.request("POST", f"/sessions/{name}/take_over").status == 204
    assert mode(server, name) == "passthrough", "taking over takes the keys back"
    refused = capture(server, name, agent)
    assert (refused.status, refused.code) == (409, "session_taken")
    with HttpHost(f"{server.url}/mcp", agent) as host:
        host.initialize()
        told = failure(host.call("wsh_input_mode", {"session": name, "mode": "capture"}))
        assert told["code"] == "SESSION_TAKEN"
        assert structured(host.call("wsh_input_mode", {"session": name}))["mode"] == "passthrough"
    with talk(server, f"/sessions/{name}/ws/json", agent) as socket:
        assert socket.fail("capture_input") == "session_taken"
    assert mode(server, name) == "passthrough"
    assert capture(server, name, "").status == 204, "a person's own keys are theirs to capture"
    assert server.request("POST", f"/sessions/{name}/input/release").status == 204
    assert server.request("POST", f"/sessions/{name}/hand_back").status == 204
    assert capture(server, name, agent).status == 204


@pytest.mark.usefixtures("held_agents")
def test_an_agent_captures_nothing_outside_its_sandbox(server: RunningServer, open_session: Open, agent: str) -> None:
    name = open_session("cat")
    refused = capture(server, name, agent)
    assert (refused.status, refused.code) == (403, "sandbox_refused"), refused.body
    for token in (agent, server.token):
        with HttpHost(f"{server.url}/mcp", token) as host:
            host.initialize()
            told = failure(host.call("wsh_input_mode", {"session": name, "mode": "capture"}))
            assert told["reason"] == "sandbox_refused"
    assert mode(server, name) == "passthrough"
    assert capture(server, name, "").status == 204


def test_an_agent_cannot_send_away_who_has_taken_over(server: RunningServer, open_session: Open, agent: str) -> None:
    name = open_session("cat")
    person = look(server, name)
    with person.connection:
        person.say(type="take_over")
        person.read_until(lambda: person.was_told("taken"), "the take-over")
        refused = server.request("POST", f"/sessions/{name}/detach", token=agent)
        assert (refused.status, refused.code) == (409, "session_taken")
        assert server.request("POST", f"/sessions/{name}/input", b"x", token=agent).code == "session_taken"
        assert server.request("POST", f"/sessions/{name}/detach").status == 204
        person.read_until(lambda: person.was_told("dismissed"), "the person's own word")
