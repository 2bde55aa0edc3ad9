"""What is said with a call that is made at a host: how long its answer may take, and whether it may be made twice."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.host.carrier import StillCarrier
from wsh.host.carrier import ForwardedAnswer, ForwardedCall, HostState, ProgressListener
from wsh.host.registry import HostRegistry
from wsh.mcp.tool.all import list_tools
from wsh.mcp.tool.far import FarContext
from wsh.operation.contract import call_terminal
from wsh.operation.forward import find_deadline
from wsh.operation.operation import NOTHING
from wsh.operation.run import run_command
from wsh.operation.screen import get_screen
from wsh.operation.workspace import _join_transcripts
from wsh.wire.caller import Caller
from wsh.wire.setting import load


class _Noting(StillCarrier):
    def __init__(self, state: HostState) -> None:
        super().__init__(state)
        self.calls: list[ForwardedCall] = []

    async def call(self, call: ForwardedCall, on_progress: ProgressListener | None = None) -> ForwardedAnswer:
        self.calls.append(call)
        return ForwardedAnswer(result={"structured": {}, "text": "{}", "is_error": False})


@pytest.mark.parametrize(
    ("name", "repeatable"),
    [
        ("wsh_get_screen", True),
        ("wsh_get_scrollback", True),
        ("wsh_await_quiesce", True),
        ("wsh_send_input", False),
        ("wsh_run_command", False),
        ("wsh_input_mode", False),
    ],
)
async def test_a_far_tool_that_only_reads_or_waits_may_be_made_twice(name: str, repeatable: bool) -> None:
    hosts = HostRegistry()
    carrier = _Noting(HostState("gpu1", "ssh", "gpu1", online=True))
    hosts.add(carrier)
    rooms = cast(Any, SimpleNamespace(hosts=hosts, server=SimpleNamespace(hostname="here")))
    tool = next(tool for tool in list_tools(load(environ={}), os.environ) if tool.name == name).bind(rooms)
    context = FarContext(Caller("owner", "owner", "unix"), 1000, 0.0, lambda *told, **more: None)
    await tool.run({"session": "gpu1/train"}, context)
    assert [call.repeatable for call in carrier.calls] == [repeatable]


def test_a_call_that_waits_without_saying_how_long_has_the_longest_wait_at_a_host() -> None:
    settings = load(environ={}, flags={"hosts.call_timeout_s": 7.0, "server.max_wait_ms": 50_000})
    rooms = cast(Any, SimpleNamespace(settings=settings, cap_wait=lambda ms: min(ms, 50_000)))
    assert find_deadline(get_screen, NOTHING, rooms) == 7.0
    assert find_deadline(call_terminal, NOTHING, rooms) == 60.0
    assert find_deadline(run_command, run_command.params.model_construct(max_wait_ms=20_000), rooms) == 30.0
    assert find_deadline(run_command, run_command.params.model_construct(max_wait_ms=90_000), rooms) == 60.0


async def test_a_search_with_a_deadline_of_its_own_has_that_long_at_a_host() -> None:
    hosts = HostRegistry()
    carrier = _Noting(HostState("gpu1", "ssh", "gpu1", online=True))
    hosts.add(carrier)
    settings = load(environ={}, flags={"hosts.list_timeout_ms": 2000})
    rooms = SimpleNamespace(hosts=hosts, settings=settings, server=SimpleNamespace(hostname="here"))
    context = cast(Any, SimpleNamespace(rooms=rooms, caller=Caller("owner", "owner", "unix")))
    found: dict[str, Any] = {"hits": [], "warnings": []}
    for arguments in ({"timeoutMs": 20_000}, {"timeout_ms": 20_000}, {}):
        with pytest.raises(KeyError):  # the carrier has no hits
            await _join_transcripts(context, {"query": "word", **arguments}, found)
    assert [call.deadline_s for call in carrier.calls] == [22.0, 22.0, 2.0]
    asked = [cast(Any, call.params)["arguments"].get("timeoutMs") for call in carrier.calls]
    assert asked == [20_000, 20_000, None]
