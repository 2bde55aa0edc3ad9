"""What the owner sees of approvals, policy, audit and clients, and nobody else."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from websockets.sync.client import connect, unix_connect

from tests.support.bridge.program import running_desktop
from tests.support.mcp.host import StdioHost
from tests.support.serving import RunningServer
from tests.support.waiting import wait_until

ASK: dict[str, Any] = {
    "action": "execute",
    "invocation": {"mode": "interactive", "intent": "execute_command"},
    "execution": {"command": "echo", "args": ["asked for"]},
    "runtime": {"timeout_ms": 1000, "cwd": "/usr"},
}


def test_a_request_is_shown_while_it_waits_and_afterwards_with_its_end(server: RunningServer) -> None:
    with running_desktop(server.places.desktop_info, "ignore"):
        answer = server.request("POST", "/terminal", ASK).json
        assert answer["result"]["approval"] == "pending", answer
        (shown,) = (one for one in server.get("/approvals")["requests"] if one["state"] == "waiting")
        withdrawn = server.request("POST", "/terminal", {"action": "terminate", "target": answer["identity"]})
        assert withdrawn.status == 200, withdrawn
    assert (shown["state"], shown["kind"], shown["command"], shown["cwd"]) == (
        "waiting",
        "run",
        "echo 'asked for'",
        "/usr",
    )
    assert shown["asker"] and shown["since"] <= time.time() and 299 < shown["deadline"] - shown["since"] < 301
    ended = server.get("/approvals")["requests"][0]
    assert ended["state"] != "waiting" and ended["ended"] >= ended["since"]
    assert shown["trace_id"] == ended["trace_id"] == answer["correlation"]["trace_id"]
    entries = server.get("/audit?limit=2")["entries"]
    assert [entry["kind"] for entry in entries] == ["decision", "approval"]
    assert entries[-1]["trace_id"] == shown["trace_id"]


def test_a_broken_policy_is_shown_with_its_warning(server: RunningServer) -> None:
    shipped = server.get("/policy")
    assert shipped["warning"] is None and shipped["rules"] and not shipped["exists"]
    file = server.places.policy_file
    file.write_text("this is = not [a policy")
    try:
        file.chmod(0o600)
        broken = server.get("/policy")
        told = server.get("/server/info")
    finally:
        file.unlink()
    assert broken["exists"] and "cannot be used" in broken["warning"]
    assert told["warnings"] == [broken["warning"]] and server.get("/server/info")["warnings"] == []


def test_only_the_owner_sees_any_of_it(server: RunningServer) -> None:
    for path in ("/approvals", "/policy", "/audit", "/clients"):
        refused = server.request("GET", path, headers={"wsh-role": "agent"})
        assert (refused.status, refused.code) == (403, "forbidden"), path
        assert server.request("GET", path, token=None).status == 401
    assert server.request("GET", "/audit?limit=0").status == 400
    assert list(server.get("/clients")) == ["clients"]


def test_everybody_who_is_connected_is_listed_with_their_kind(server: RunningServer) -> None:
    def clients() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = server.get("/clients")["clients"]
        return listed

    earlier = {one["since"] for one in clients()}  # MCP clients of other tests that never said goodbye

    def kinds() -> dict[str, Any]:
        return {one["kind"]: one for one in clients() if one["since"] not in earlier}

    assert server.request("POST", "/sessions", {"name": "watched", "command": "cat"}).status == 201
    with contextlib.ExitStack() as here:
        for path in ("/ws/json", "/sessions/watched/ws/raw", "/sessions/watched/ws/view"):
            here.enter_context(connect(server.ws_url + path, additional_headers=server.auth))
        here.enter_context(unix_connect(str(server.socket), "ws://localhost/sessions/watched/ws/view", close_timeout=2))
        folders = {"XDG_RUNTIME_DIR": "runtime", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config"}
        host = here.enter_context(StdioHost(env={k: str(getattr(server.places, v).parent) for k, v in folders.items()}))
        host.initialize()
        opened = server.request("POST", "/mcp", INITIALIZE, headers=MCP)
        session = {**MCP, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert server.request("POST", "/mcp", ready, headers=session).status == 202
        # `wsh mcp` answers its host before it has told the server who that is.
        wait_until(lambda: len(kinds()) == 6 and kinds()["mcp-stdio"]["client"], "all of them", seen=kinds)
        found = kinds()
        assert set(found) == {"json", "raw", "view", "attach", "mcp-stdio", "mcp-http"}
        assert found["json"]["session"] is None and found["attach"]["session"] == "watched"
        assert (found["mcp-stdio"]["role"], found["mcp-stdio"]["client"]) == ("agent", "raw-test")
        assert found["mcp-http"]["client"] == "over-http"
        assert all(one["since"] <= time.time() for one in found.values())
        assert server.request("DELETE", "/mcp", headers=session).status == 200
    server.request("DELETE", "/sessions/watched")
    wait_until(lambda: not kinds(), "all of them gone")


MCP = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "over-http", "version": "1"},
    },
}
