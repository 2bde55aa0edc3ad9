"""Parameters of methods that do not fit: which field is wrong, and how."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.mcp.door import RunningDoor
from tests.support.mcp.host import HttpHost, StdioHost

Host = HttpHost | StdioHost

CASES: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("tools/call", {"name": "echo", "arguments": []}, {"arguments": "must be an object, not a list"}),
    ("tools/call", {"arguments": {}}, {"name": "is required"}),
    (
        "tools/call",
        {"name": "echo", "_meta": {"progressToken": 1.5}},
        {"_meta.progressToken": "must be text or a whole number, not 1.5"},
    ),
    ("resources/read", {}, {"uri": "is required"}),
    ("resources/read", {"uri": None}, {"uri": "must be text, not null"}),
    ("prompts/get", {"name": "x", "arguments": {"a": 5}}, {"arguments.a": "must be text, not 5"}),
    ("tools/list", {"cursor": 5}, {"cursor": "must be text, not 5"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/nix", "name": "n", "uri": "u"}, "argument": {"name": "n", "value": "v"}},
        {"ref.type": "must be 'ref/prompt' or 'ref/resource', not \"ref/nix\""},
    ),
    ("tools/list", {"cursor": "zzz"}, {"cursor": "is none that this server gave"}),
    ("prompts/list", {"cursor": "zzz"}, {"cursor": "is none that this server gave"}),
    ("resources/list", {"cursor": "zzz"}, {"cursor": "is none that this server gave"}),
    ("resources/templates/list", {"cursor": ""}, {"cursor": "is none that this server gave"}),
]


def test_the_field_and_its_fault_are_named_by_every_door(any_host: Host) -> None:
    for method, params, faults in CASES:
        error = any_host.request(method, params)["error"]
        assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_REQUEST"), (method, params)
        assert {fault["path"]: fault["message"] for fault in error["data"]["errors"]} == faults, (method, params)
        path, message = next(iter(faults.items()))
        assert error["message"] == f"Invalid parameters for {method}: {path!r} {message}.", (method, params)
    assert "result" in any_host.request("tools/list", {})


def test_a_handshake_names_what_it_lacks(door: RunningDoor) -> None:
    with StdioHost() as stdio, HttpHost(door.url) as http:
        for host in (stdio, http):
            error = host.request("initialize", {})["error"]
            assert error["code"] == -32602
            lacking = {fault["path"]: fault["message"] for fault in error["data"]["errors"]}
            assert lacking == dict.fromkeys(("capabilities", "clientInfo", "protocolVersion"), "is required")
        stdio.send({"jsonrpc": "2.0", "id": "bare", "method": "initialize"})
        bare = stdio.wait_answer("bare")["error"]
        assert bare["data"]["errors"] == [{"path": "params", "message": "is required"}]
        assert "result" in stdio.initialize()


@pytest.mark.parametrize("method", ["tools/list", "resources/list"])
def test_a_request_before_the_handshake_is_told_to_send_it_first(door: RunningDoor, method: str) -> None:
    with StdioHost() as host:
        error = host.request(method)["error"]
        assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_REQUEST")
        assert "send initialize first" in error["message"]
        assert host.request("ping")["result"] == {}


def test_very_many_faults_are_counted_not_listed(stdio: StdioHost) -> None:
    arguments = dict.fromkeys(map(str, range(5000)), 5)
    error = stdio.request("prompts/get", {"name": "wsh:core", "arguments": arguments})["error"]
    assert len(error["data"]["errors"]) == 1 and "5000 values do not fit" in error["message"]
