"""MCP behind the same doors, on the same server, soon after its start."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from tests.support.serving import Reply, RunningServer
from wsh.wire.token_file import TokenFile

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def call(server: RunningServer, method: str, params: Any = None, token: str | None = "", **headers: str) -> Reply:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    return server.request("POST", "/mcp", body, headers={**accept, **headers}, token=token)


def result_of(reply: Reply) -> Any:
    lines = [line for line in reply.body.splitlines() if line.startswith(b"data:")]
    return json.loads(lines[-1].removeprefix(b"data:"))["result"]


def test_what_is_not_json_is_told_so_and_case_does_not_matter(server: RunningServer) -> None:
    for media in ("Application/JSON", "application/json; charset=utf-8"):
        assert call(server, "initialize", INITIALIZE, **{"Content-Type": media}).status == 200, media
    for media in ("text/plain", "application/jsonx", ""):
        refused = call(server, "initialize", INITIALIZE, **{"Content-Type": media})
        assert (refused.status, refused.json["error"]["code"]) == (415, -32600), media
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}
    session = call(server, "initialize", INITIALIZE).headers["mcp-session-id"]
    headers = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session}
    assert server.request("POST", "/mcp", note, headers=headers).status == 202


def test_mcp_passes_the_same_doors(server: RunningServer) -> None:
    assert call(server, "initialize", INITIALIZE, token=None).code == "auth_required"
    assert call(server, "initialize", INITIALIZE, token="wrong").code == "auth_invalid"
    assert call(server, "initialize", INITIALIZE, Origin="null").code == "origin_not_allowed"
    assert call(server, "initialize", INITIALIZE, Host="evil.example").code == "host_not_allowed"
    agent = TokenFile(server.places.tokens).add_agent("mcp-client")
    answered = call(server, "initialize", INITIALIZE, token=agent)
    assert answered.status == 200 and answered.headers["x-content-type-options"] == "nosniff"
    assert result_of(answered)["serverInfo"]["name"] == "wsh"


def test_paths_below_it_that_do_not_exist_are_unknown_as_everywhere(server: RunningServer) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    headers = {"Accept": "application/json, text/event-stream"}
    for path in ("/mcp/x", "/mcp/x/stdio", "/mcp/stdio/x", "/mcpx"):
        for method in ("POST", "GET", "DELETE"):
            unknown = server.request(method, path, body if method == "POST" else None, headers=headers)
            assert (unknown.status, unknown.code) == (404, "not_found"), (method, path)
    assert server.request("POST", "/mcp/x", body, headers=headers, token=None).code == "auth_required"
    assert server.request("POST", "/mcp/", body, headers=headers).status == 200
    assert server.request("POST", "/mcp/stdio", body).status == 404, "it is for the unix socket alone"


def test_every_tool_that_is_offered_has_valid_schemas(server: RunningServer) -> None:
    session = call(server, "initialize", INITIALIZE).headers["mcp-session-id"]
    tools = result_of(call(server, "tools/list", **{"Mcp-Session-Id": session}))["tools"]
    assert len(tools) == 24
    for tool in tools:
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool.get("outputSchema", {}))


def test_a_session_made_by_mcp_is_seen_by_http(server: RunningServer) -> None:
    session = call(server, "initialize", INITIALIZE).headers["mcp-session-id"]
    headers = {"Mcp-Session-Id": session}
    made = call(server, "tools/call", {"name": "wsh_create_session", "arguments": {"command": "cat"}}, **headers)
    name = result_of(made)["structuredContent"]["session"]
    try:
        assert server.get(f"/sessions/{name}")["running"]
    finally:
        assert server.request("DELETE", f"/sessions/{name}").status == 204
