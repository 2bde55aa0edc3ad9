"""Every rule about fields: single, coupled, and by mode; always the same code, always the field by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contract.world import HEADLESS, INTERACTIVE, opened
from wsh.contract.reply.fault import ContractFault
from wsh.contract.reply.taxonomy import BY_CODE
from wsh.contract.request.alias import Resolution, resolve, to_canonical
from wsh.contract.request.model import ContractRequest
from wsh.contract.request.validate import validate

OPEN: dict[str, Any] = {"mode": "interactive", "intent": "open_only"}
LS: dict[str, Any] = {"command": "ls"}


def check(raw: dict[str, Any]) -> ContractRequest:
    resolution, fault = resolve(raw, "memory_terminal_interactive", "compat")
    if fault is not None:
        raise fault
    return validate(to_canonical(raw, resolution), resolution)


def refused(raw: dict[str, Any]) -> ContractFault:
    with pytest.raises(ContractFault) as caught:
        check(raw)
    return caught.value


ACCEPTED: dict[str, dict[str, Any]] = {
    "execute headless": {"action": "execute", "invocation": HEADLESS, "execution": LS},
    "execute interactive": {"action": "execute", "invocation": INTERACTIVE, "execution": LS},
    "execute with everything": {
        "action": "execute",
        "invocation": INTERACTIVE,
        "correlation": {"request_id": "req_1", "trace_id": "trace_1", "client_request_id": "mine ☺"},
        "runtime": {
            "workspace_id": "w",
            "cwd": "/tmp",
            "timeout_ms": 30000,
            "adapter_override": "auto",
            "binary_path": "/usr/bin/x",
            "spawn_timeout_ms": 30000,
        },
        "execution": {"command": "ls", "args": ["-l", ""], "env": {"A": ""}},
        "compat": {"caller_surface": "dashboard", "name": "title"},
    },
    "open only": {"action": "execute", "invocation": OPEN},
    "open only with env": {"action": "execute", "invocation": OPEN, "execution": {"env": {"A": "1"}}},
    "send by terminal": {
        "action": "execute",
        "invocation": INTERACTIVE,
        "execution": LS,
        "target": {"terminal_id": "t"},
    },
    "send by session": {"action": "execute", "invocation": INTERACTIVE, "execution": LS, "target": {"session_id": "s"}},
    "read by session": {"action": "read_output", "target": {"session_id": "s"}},
    "read by terminal": {"action": "read_output", "target": {"terminal_id": "t", "cursor": 0}},
    "read by both": {"action": "read_output", "target": {"session_id": "s", "terminal_id": "t"}},
    "read headless": {"action": "read_output", "invocation": {"mode": "headless"}, "target": {"session_id": "s"}},
    "terminate": {"action": "terminate", "target": {"session_id": "s"}},
    "terminate headless": {"action": "terminate", "invocation": {"mode": "headless"}, "target": {"session_id": "s"}},
    "list": {"action": "list"},
    "list headless": {"action": "list", "invocation": {"mode": "headless"}, "runtime": {"workspace_id": "w"}},
    "empty args are no args": {
        "action": "execute",
        "invocation": HEADLESS,
        "execution": {"command": "ls -l", "args": []},
    },
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_request_that_makes_sense_is_accepted(name: str) -> None:
    check(ACCEPTED[name])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    # action and field coupling
    "execute without mode": (
        {"action": "execute", "invocation": {"intent": "execute_command"}, "execution": LS},
        "invocation.mode",
    ),
    "execute without intent": (
        {"action": "execute", "invocation": {"mode": "headless"}, "execution": LS},
        "invocation.intent",
    ),
    "execute without invocation": ({"action": "execute", "execution": LS}, "invocation.mode"),
    "execute_command without a command": ({"action": "execute", "invocation": HEADLESS}, "execution.command"),
    "execute_command with args alone": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"args": ["x"]}},
        "execution.command",
    ),
    "open_only with a command": ({"action": "execute", "invocation": OPEN, "execution": LS}, "execution.command"),
    "open_only with args": (
        {"action": "execute", "invocation": OPEN, "execution": {"args": ["x"]}},
        "execution.args",
    ),
    "open_only with a target": ({"action": "execute", "invocation": OPEN, "target": {"terminal_id": "t"}}, "target"),
    "read_output without a target": ({"action": "read_output"}, "target"),
    "read_output with an empty target": ({"action": "read_output", "target": {}}, "target"),
    "read_output with a cursor alone": ({"action": "read_output", "target": {"cursor": 3}}, "target"),
    "read_output with an execution": (
        {"action": "read_output", "target": {"session_id": "s"}, "execution": LS},
        "execution",
    ),
    "terminate without a target": ({"action": "terminate"}, "target"),
    "terminate with an empty target": ({"action": "terminate", "target": {}}, "target"),
    "terminate with a cursor": ({"action": "terminate", "target": {"session_id": "s", "cursor": 1}}, "target.cursor"),
    "list with an execution": ({"action": "list", "execution": LS}, "execution"),
    "list with a target": ({"action": "list", "target": {"session_id": "s"}}, "target"),
    "list with an intent": ({"action": "list", "invocation": HEADLESS}, "invocation.intent"),
    "list with a cwd": ({"action": "list", "runtime": {"cwd": "/"}}, "runtime.cwd"),
    # mode constraints
    "headless with a terminal": (
        {"action": "execute", "invocation": HEADLESS, "execution": LS, "target": {"terminal_id": "t"}},
        "target.terminal_id",
    ),
    "headless execute with a session": (
        {"action": "execute", "invocation": HEADLESS, "execution": LS, "target": {"session_id": "s"}},
        "target.session_id",
    ),
    "headless open_only": (
        {"action": "execute", "invocation": {"mode": "headless", "intent": "open_only"}},
        "invocation.intent",
    ),
    "headless with an adapter": (
        {"action": "execute", "invocation": HEADLESS, "execution": LS, "runtime": {"adapter_override": "local"}},
        "runtime.adapter_override",
    ),
    "send without a terminal": ({"action": "send", "command": "ls"}, "target.terminal_id"),
    "send with an environment": (
        {"action": "send", "command": "ls", "terminal_id": "t", "env": {"A": "1"}},
        "execution.env",
    ),
    "send with a cwd": ({"action": "send", "command": "ls", "terminal_id": "t", "cwd": "/"}, "runtime.cwd"),
    "an empty target": ({"action": "execute", "invocation": INTERACTIVE, "execution": LS, "target": {}}, "target"),
    # single fields
    "no action": ({}, "action"),
    "action null": ({"action": None}, "action"),
    "action a number": ({"action": 7}, "action"),
    "action a list": ({"action": ["list"]}, "action"),
    "an unknown field": ({"action": "list", "colour": "red"}, "colour"),
    "an unknown nested field": ({"action": "list", "runtime": {"colour": "red"}}, "runtime.colour"),
    "mode a list": ({"action": "list", "invocation": {"mode": ["interactive", "headless"]}}, "invocation.mode"),
    "mode a number": ({"action": "list", "invocation": {"mode": 1}}, "invocation.mode"),
    "invocation a text": ({"action": "list", "invocation": "headless"}, "invocation"),
    "an unknown intent": (
        {"action": "execute", "invocation": {"mode": "headless", "intent": "guess"}, "execution": LS},
        "invocation.intent",
    ),
    "timeout a text": ({"action": "list", "runtime": {"timeout_ms": "5"}}, "runtime.timeout_ms"),
    "timeout a float": ({"action": "list", "runtime": {"timeout_ms": 5.5}}, "runtime.timeout_ms"),
    "timeout true": ({"action": "list", "runtime": {"timeout_ms": True}}, "runtime.timeout_ms"),
    "timeout zero": ({"action": "list", "runtime": {"timeout_ms": 0}}, "runtime.timeout_ms"),
    "timeout too long": ({"action": "list", "runtime": {"timeout_ms": 10**9}}, "runtime.timeout_ms"),
    "spawn timeout over its maximum": (
        {"action": "execute", "invocation": INTERACTIVE, "execution": LS, "runtime": {"spawn_timeout_ms": 30001}},
        "runtime.spawn_timeout_ms",
    ),
    "an unknown adapter": (
        {"action": "execute", "invocation": INTERACTIVE, "execution": LS, "runtime": {"adapter_override": "remote"}},
        "runtime.adapter_override",
    ),
    "command a list": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": ["ls"]}},
        "execution.command",
    ),
    "command blank": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": " "}},
        "execution.command",
    ),
    "command with NUL": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "l\x00s"}},
        "execution.command",
    ),
    "a command line with args": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "git status", "args": ["-s"]}},
        "execution.command",
    ),
    "args a text": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "ls", "args": "-l"}},
        "execution.args",
    ),
    "args of numbers": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "ls", "args": [1]}},
        "execution.args.0",
    ),
    "env a list": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "ls", "env": ["A=1"]}},
        "execution.env",
    ),
    "env with a number": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "ls", "env": {"A": 1}}},
        "execution.env.A",
    ),
    "env with an impossible name": (
        {"action": "execute", "invocation": HEADLESS, "execution": {"command": "ls", "env": {"A=B": "1"}}},
        "execution.env.A=B",
    ),
    "cursor negative": ({"action": "read_output", "target": {"session_id": "s", "cursor": -1}}, "target.cursor"),
    "session a number": ({"action": "read_output", "target": {"session_id": 5}}, "target.session_id"),
    "an unknown surface": ({"action": "list", "compat": {"caller_surface": "moon"}}, "compat.caller_surface"),
    "request_id with blanks": ({"action": "list", "correlation": {"request_id": "a b"}}, "correlation.request_id"),
    "request_id empty": ({"action": "list", "correlation": {"request_id": ""}}, "correlation.request_id"),
    "trace_id a number": ({"action": "list", "correlation": {"trace_id": 5}}, "correlation.trace_id"),
    "trace_id with a newline": ({"action": "list", "correlation": {"trace_id": "a\nb"}}, "correlation.trace_id"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_request_that_makes_no_sense_names_the_field(name: str) -> None:
    raw, field = REFUSED[name]
    fault = refused(raw)
    assert fault.code == "PM_TERM_INVALID_PAYLOAD"
    assert field in [hint["field"] for hint in fault.details["fields"]]
    assert all(hint["problem"] for hint in fault.details["fields"])


@pytest.mark.parametrize("mode", ["both", "interactive,headless", "Interactive", "", "auto"])
@pytest.mark.parametrize("action", ["execute", "read_output", "terminate", "list", "run"])
def test_a_mode_that_is_none_of_ours_has_its_own_code_and_the_allowed_set(mode: str, action: str) -> None:
    fault = refused({"action": action, "invocation": {"mode": mode}})
    assert fault.code == "PM_TERM_INVALID_MODE"
    assert fault.details["allowed_modes"] == ["interactive", "headless"]


def test_every_wrong_field_is_named_at_once() -> None:
    fault = refused({"action": "execute", "runtime": {"timeout_ms": "x"}, "execution": {"command": 1}, "colour": 1})
    assert {hint["field"] for hint in fault.details["fields"]} == {"runtime.timeout_ms", "execution.command", "colour"}


@pytest.mark.parametrize("raw", [None, [], "list", 7, True, ["action", "list"]])
async def test_something_that_is_no_object_is_an_invalid_payload(raw: object, tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        answer = await world.ask(raw)
        assert answer["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
        assert answer["correlation"]["request_id"].startswith("req_")


def test_the_action_is_judged_before_the_mode_and_the_mode_before_the_rest() -> None:
    assert refused({"action": "x", "invocation": {"mode": "y"}, "z": 1}).code == "PM_TERM_INVALID_ACTION"
    assert refused({"action": "list", "invocation": {"mode": "y"}, "z": 1}).code == "PM_TERM_INVALID_MODE"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_names = [
    "action",
    "invocation",
    "correlation",
    "runtime",
    "execution",
    "target",
    "compat",
    "command",
    "timeout",
    "zzz",
]
_inner = ["mode", "intent", "command", "args", "env", "cwd", "timeout_ms", "session_id", "cursor", "legacy_action"]
_words = st.sampled_from(
    ["execute", "list", "run", "create", "headless", "interactive", "open_only", "execute_command", "ls", ""]
)
_part = st.dictionaries(st.sampled_from(_inner), _words | _json, max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(_names), _words | _part | _json, max_size=6))
def test_whatever_is_sent_the_answer_is_a_request_or_one_code_and_always_the_same(raw: dict[str, Any]) -> None:
    def outcome() -> object:
        try:
            return check(raw)
        except ContractFault as fault:
            return (BY_CODE[fault.code].category, fault.code, fault.message, str(fault.details))

    first = outcome()
    assert first == outcome()
    assert isinstance(first, ContractRequest) or str(first).startswith("('validation'")


def test_a_resolution_is_needed_only_for_aliases() -> None:
    assert validate({"action": "list"}, Resolution("list")).action == "list"
