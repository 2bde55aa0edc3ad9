"""Plain calls over stdio go without the SDK's dispatcher; nobody can tell by the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.mcp.host import StdioHost, structured

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"text": "plain é \u2028 \ud7ff"}),
    ("echo", {"text": 7}),
    ("echo", {"text": "x", "unknown": 1}),
    ("echo", {}),
    ("no_such_tool", {}),
]


def answer(host: StdioHost, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, **({} if meta is None else {"_meta": meta})}
    body = host.request("tools/call", params)
    return {key: value for key, value in body.items() if key != "id"}


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_a_plain_call_is_answered_as_one_through_the_sdk(
    stdio: StdioHost, name: str, arguments: dict[str, Any]
) -> None:
    plain = answer(stdio, name, arguments, None)
    # A token for progress takes a call through the SDK.
    assert plain == answer(stdio, name, arguments, {"progressToken": "t"})
    assert ("error" in plain) != ("result" in plain)


def test_many_plain_calls_at_once_have_one_answer_each(either_stdio: StdioHost) -> None:
    stdio = either_stdio
    for number in range(50):
        stdio.send({"jsonrpc": "2.0", "id": f"many-{number}", "method": "tools/call",
                    "params": {"name": "echo", "arguments": {"text": str(number)}}})  # fmt: skip
    told: dict[str, str] = {}
    while len(told) < 50:
        body = stdio.receive()
        if str(body.get("id", "")).startswith("many-"):
            assert body["id"] not in told
            told[body["id"]] = structured(body)["text"]
    assert told == {f"many-{number}": str(number) for number in range(50)}
