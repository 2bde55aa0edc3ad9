"""The sockets of a session on another machine: they follow its name, outlive its server, and end with it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.host.conftest import Net
from tests.support.http.talk import talk
from tests.support.mcp.host import HttpHost
from tests.support.waiting import HANG_S, wait_until
from wsh.wire.token_file import TokenFile

pytestmark = pytest.mark.accept


def _open(net: Net, name: str) -> str:
    made = net.server.request("POST", "/sessions", {"name": name, "command": "bash --norc --noprofile"})
    assert made.status == 201, made
    return "/sessions/" + name.replace("/", "%2F")


def _print(net: Net, path: str, word: str) -> None:
    assert net.server.request("POST", f"{path}/input", f"echo {word}-$((6*7))\r".encode()).status == 204


def _is_line(word: str, event: dict[str, object]) -> bool:
    return f"{word}-42" in json.dumps(event)


def _wait_for_next(net: Net, since: float) -> None:
    wait_until(lambda: (now := net.host("near"))["online"] and now["since"] > since, "the next connection")


def _connect(net: Net, path: str, token: str = "") -> ClientConnection:
    return connect(
        f"{net.server.ws_url}{path}",
        additional_headers={"Authorization": f"Bearer {token or net.server.token}"},
        max_size=None,
    )


def _read_to_the_end(connection: ClientConnection) -> tuple[list[str | bytes], ConnectionClosed]:
    came: list[str | bytes] = []
    while True:
        try:
            came.append(connection.recv(timeout=HANG_S))
        except ConnectionClosed as end:
            return came, end


@pytest.fixture
def token(net: Net) -> Iterator[str]:
    yield TokenFile(net.server.places.tokens).add_agent("watcher")
    net.server.places.policy_file.unlink(missing_ok=True)


def test_a_socket_and_a_subscription_follow_a_session_that_is_renamed_also_through_a_cut(net: Net) -> None:
    path = _open(net, "near/before")
    with talk(net.server, f"{path}/ws/json") as own, talk(net.server, "/ws/json") as all_of_them:
        own.ask("subscribe", {"events": ["lines"]})
        own.event("sync")
        all_of_them.ask("subscribe", {"events": ["lines"]}, session="near/before")
        all_of_them.event("sync")
        assert net.server.request("PATCH", path, {"name": "near/after"}).json["name"] == "near/after"
        path = "/sessions/near%2Fafter"
        all_of_them.event("session_renamed", lambda told: told["new_name"] == "near/after")
        since = net.host("near")["since"]
        net.ssh.machines["near"].cut()
        _wait_for_next(net, since)
        for client in (own, all_of_them):  # the subscription is there again
            client.event("sync")
        _print(net, path, "word")
        own.event("line", lambda told: _is_line("word", told))
        assert all_of_them.event("line", lambda told: _is_line("word", told))["session"] == "near/after"
        assert own.ask("get_screen", {"format": "plain"})["lines"]
        assert all_of_them.ask("unsubscribe", session="near/after") == {"events": []}
    assert net.server.request("DELETE", path).status == 204


def test_viewers_and_subscriptions_outlive_a_server_that_leaves_its_sessions_to_the_next(net: Net) -> None:
    path = _open(net, "near/lasting")
    with talk(net.server, "/ws/json") as client, _connect(net, f"{path}/ws/view?rows=24&cols=80") as viewer:
        client.ask("subscribe", {"events": ["lines"]}, session="near/lasting")
        client.event("sync")
        since = net.host("near")["since"]
        os.kill(json.loads(net.ssh.machines["near"].places.runtime_info.read_text())["pid"], signal.SIGTERM)
        _wait_for_next(net, since)
        client.event("sync")
        _print(net, path, "next")
        client.event("line", lambda told: _is_line("next", told))
        seen: list[str | bytes] = []
        while not any(isinstance(one, bytes) and b"next-42" in one for one in seen):
            seen.append(viewer.recv(timeout=HANG_S))
        told = [json.loads(one) for one in seen if isinstance(one, str)]
        assert [one["online"] for one in told if one["type"] == "host"] == [False, True]
    assert net.server.request("DELETE", path).status == 204


def test_the_socket_of_a_far_session_ends_with_it_after_its_last_event(net: Net) -> None:
    path = _open(net, "near/short")
    with _connect(net, f"{path}/ws/json") as silent, _connect(net, f"{path}/ws/json") as subscribed:
        subscribed.send(json.dumps({"id": 1, "method": "subscribe", "params": {"events": ["exit"]}}))
        while "sync" not in str(subscribed.recv(timeout=HANG_S)):
            pass
        assert net.server.request("DELETE", path).status == 204
        for connection in (silent, subscribed):
            came, end = _read_to_the_end(connection)
            assert end.rcvd is not None and (end.rcvd.code, end.rcvd.reason) == (1000, "the session ended")
        assert any('"exit"' in str(one) for one in came), came


def test_a_socket_that_is_refused_there_names_the_session_as_here(net: Net) -> None:
    for kind in ("view", "raw"):
        with pytest.raises(InvalidStatus) as refused:
            _connect(net, f"/sessions/near%2Fnone/ws/{kind}")
        error = json.loads(refused.value.response.body or b"")["error"]
        assert error["code"] == "session_not_found" and "near/none" in error["message"]
    with talk(net.server, "/ws/json") as client:
        answer = client.answer(client.send("subscribe", {"events": ["lines"]}, session="near/none"))
        assert "near/none" in answer["error"]["message"]


def test_a_viewer_does_not_go_on_at_another_machine_that_has_the_name_now(net: Net) -> None:
    assert net.server.request("PUT", "/hosts/moved", {"target": "near"}).status == 200
    net.wait_until_online("moved")
    path = _open(net, "moved/job")
    with _connect(net, f"{path}/ws/view?rows=24&cols=80") as viewer:
        assert net.server.request("DELETE", "/hosts/moved").status == 200
        assert net.server.request("PUT", "/hosts/moved", {"target": "far"}).status == 200
        _, end = _read_to_the_end(viewer)
        assert end.rcvd is not None and end.rcvd.code == 1000
    assert net.server.request("DELETE", "/hosts/moved").status == 200
    assert net.server.request("DELETE", "/sessions/near%2Fjob").status == 204


def test_the_sandbox_of_agents_holds_for_a_raw_socket_that_is_opened_again(net: Net, token: str) -> None:
    path = _open(net, "near/wide")
    with _connect(net, f"{path}/ws/raw", token) as raw:
        raw.send(b"echo agent-$((6*7))\r")
        seen = b""
        while b"agent-42" not in seen:
            seen += bytes(raw.recv(timeout=HANG_S))  # type: ignore[arg-type]  # a raw socket has bytes alone
        net.server.places.policy_file.write_text('version = 1\n[sandbox]\nagents = "workspace"\n')
        since = net.host("near")["since"]
        net.ssh.machines["near"].cut()
        _, end = _read_to_the_end(raw)
        assert end.rcvd is not None and "near/wide" in end.rcvd.reason
        _wait_for_next(net, since)
    assert net.server.request("DELETE", path).status == 204


def _mode(net: Net, path: str) -> str:
    return str(net.server.get(f"{path}/input/mode")["mode"])


def test_keys_that_a_client_captured_there_pass_again_when_the_client_is_gone(net: Net) -> None:
    path = _open(net, "near/keys")
    with HttpHost(f"{net.server.url}/mcp", net.server.token) as host:
        host.initialize()
        assert not host.call("wsh_input_mode", {"session": "near/keys", "mode": "capture"})["result"].get("isError")
        assert _mode(net, path) == "capture"
    wait_until(lambda: _mode(net, path) == "passthrough", "the keys to pass after the MCP client")
    machine = net.ssh.machines["near"]
    with talk(net.server, "/ws/json") as client:
        client.ask("capture_input", session="near/keys")
        machine.stop()
        wait_until(lambda: not net.host("near")["online"], "the host to be away")
    machine.start()
    net.wait_until_online("near")
    wait_until(lambda: _mode(net, path) == "passthrough", "the keys to pass after the socket")
    assert net.server.request("DELETE", path).status == 204
