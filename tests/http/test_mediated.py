"""A server that mediates everything an agent does: no door gives an agent a terminal, the owner has all of them."""

from __future__ import annotations

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.http.talk import talk
from tests.support.serving import running_server
from wsh.wire.system.place import Places
from wsh.wire.token_file import TokenFile

SHELL = {"name": "mine", "command": "cat"}


def test_a_server_without_terminal_tools_gives_agents_no_terminal_by_any_door(places: Places) -> None:
    with running_server(places, "--toolsets", "contract,exec") as server:
        assert server.request("POST", "/sessions", SHELL).status == 201, "the owner is not restricted"
        token = TokenFile(places.tokens).add_agent("held")
        bearer = {"Authorization": f"Bearer {token}"}
        for method, path, body in (
            ("POST", "/sessions", {"command": "cat"}),
            ("POST", "/sessions/mine/run", {"input": "echo hi"}),
            ("POST", "/sessions/mine/input", b"typed\r"),
            ("POST", "/sessions/mine/keys", {"keys": ["a"]}),
            ("POST", "/workspace/show_file", {"workspace": "/", "path": "etc/hostname"}),
        ):
            reply = server.request(method, path, body, headers=bearer)
            assert (reply.status, reply.code) == (403, "forbidden"), (path, reply)
            assert "contract, exec" in reply.json["error"]["message"] and reply.json["error"]["hint"]
        with talk(server, "/sessions/mine/ws/json", token=token) as client:
            assert client.fail("send_input", {"data": "typed\r"}) == "forbidden"
        with connect(f"{server.ws_url}/sessions/mine/ws/raw", additional_headers=bearer) as raw:
            raw.send(b"typed\r")
            with pytest.raises(ConnectionClosed, match="offers agents contract, exec"):
                list(raw)
        assert not any(server.get("/sessions/mine/screen?format=plain")["lines"]), "something was typed"
        assert server.request("GET", "/sessions/mine/screen", headers=bearer).status == 200, "looking is allowed"
        ran = server.request("POST", "/terminal", {"action": "list"}, headers=bearer)
        assert ran.status != 403, ran
        assert server.request("POST", "/sessions/mine/input", b"x").status == 204
