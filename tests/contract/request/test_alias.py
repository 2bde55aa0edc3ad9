"""The alias table, each row in each stage, and the flat fields of older callers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.contract.world import opened
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.alias import (
    ALIASES,
    FLAT_FIELDS,
    TRUE_ALIASES,
    resolve,
    to_canonical,
)
from wsh.contract.request.model import ACTIONS
from wsh.contract.request.stage import STAGES, Stage, parse_stage
from wsh.wire.caller import Caller

LEGACY: dict[str, dict[str, Any]] = {
    "run": {"action": "run", "command": "ls", "args": ["-l"], "cwd": "/", "timeout": 5000, "workspace_id": "w"},
    "send": {"action": "send", "terminal_id": "term_1", "command": "ls"},
    "create": {"action": "create", "name": "build", "cwd": "/", "env": {"A": "1"}},
    "kill": {"action": "kill", "session_id": "sess_1"},
    "close": {"action": "close", "terminal_id": "term_1"},
    "list": {"action": "list"},
}
CANONICAL: dict[str, dict[str, Any]] = {
    "run": {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "ls", "args": ["-l"]},
        "runtime": {"cwd": "/", "timeout_ms": 5000, "workspace_id": "w"},
    },
    "send": {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "ls"},
        "target": {"terminal_id": "term_1"},
    },
    "create": {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "open_only"},
        "execution": {"env": {"A": "1"}},
        "runtime": {"cwd": "/"},
        "compat": {"name": "build"},
    },
    "kill": {"action": "terminate", "target": {"session_id": "sess_1"}},
    "close": {"action": "terminate", "target": {"terminal_id": "term_1"}},
    "list": {"action": "list"},
}


def rewrite(raw: dict[str, Any], stage: Stage = "compat") -> dict[str, Any]:
    resolution, fault = resolve(raw, "memory_terminal_interactive", stage)
    if fault is not None:
        raise fault
    return to_canonical(raw, resolution)


def test_the_table_has_exactly_the_rows_of_the_contract() -> None:
    assert {alias.legacy: (alias.canonical, alias.intent) for alias in ALIASES} == {
        "run": ("execute", "execute_command"),
        "send": ("execute", "execute_command"),
        "create": ("execute", "open_only"),
        "kill": ("terminate", None),
        "close": ("terminate", None),
        "list": ("list", None),
    }


@pytest.mark.parametrize("legacy", LEGACY)
def test_an_alias_becomes_its_canonical_request(legacy: str) -> None:
    assert rewrite(LEGACY[legacy]) == CANONICAL[legacy]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("legacy", LEGACY)
async def test_each_alias_in_each_stage(legacy: str, stage: Stage, tmp_path: Path) -> None:
    async with opened(tmp_path, environ={"WSH_ALIAS_STAGE": stage, "PM_TERM_ADAPTER_MODE": "bundled"}) as world:
        answer = await world.ask(LEGACY[legacy])
        canonical = next(alias.canonical for alias in ALIASES if alias.legacy == legacy)
        is_alias = legacy != "list"
        assert answer["resolved"]["canonical_action"] == canonical == answer["action"]
        assert answer["resolved"]["alias_applied"] is is_alias
        assert answer["resolved"]["legacy_action"] == (legacy if is_alias else None)
        assert ("compat" in answer) is is_alias
        if legacy == "list":
            assert answer["success"] and answer["result"]["items"] == []
        elif stage == "strict":
            assert answer["error"]["code"] == "PM_TERM_INVALID_ACTION"
            assert answer["error"]["details"]["canonical_action"] == canonical
            assert f'"{canonical}"' in answer["error"]["details"]["migration_hint"]
            assert answer["fallback"]["strategy"] == "reject_no_retry"
        else:
            # it went through the same routing as its canonical form, and failed there for the same reason
            same = await world.ask(CANONICAL[legacy])
            assert answer["error"]["code"] == same["error"]["code"]
            assert answer["fallback"]["strategy"] == same["fallback"]["strategy"]
            assert answer["error"]["code"] in {"PM_TERM_GUI_UNAVAILABLE", "PM_TERM_NOT_FOUND"}
            assert answer["compat"]["alias_applied"] is True
            assert ("deprecation" in answer["compat"]) is (stage == "warn")
            if stage == "warn":
                assert canonical in answer["compat"]["deprecation"]["replacement"]


async def test_a_deprecation_is_the_same_every_time_and_on_success_too(tmp_path: Path) -> None:
    async with opened(tmp_path, environ={"WSH_ALIAS_STAGE": "warn"}) as world:
        first = await world.ask({"action": "list"}, tool="memory_terminal")
        again = await world.ask({"action": "list"}, tool="memory_terminal")
        assert first["success"] and first["compat"]["deprecation"] == again["compat"]["deprecation"]
        assert "memory_terminal_interactive" in first["compat"]["deprecation"]["message"]


@pytest.mark.parametrize("action", ["spawn", "Execute", "RUN", "", " run", "execute ", "запуск", "x" * 500])
async def test_an_unknown_action_fails_with_the_canonical_ones_and_a_migration_hint(
    action: str, tmp_path: Path
) -> None:
    async with opened(tmp_path) as world:
        for stage in STAGES:
            caller = Caller("agent", "c", "token", connection="c", environ={"WSH_ALIAS_STAGE": stage})
            answer = await world.ask({"action": action}, caller)
            assert answer["error"]["code"] == "PM_TERM_INVALID_ACTION"
            assert answer["error"]["details"]["allowed_actions"] == list(ACTIONS)
            assert "execute" in answer["error"]["details"]["migration_hint"]
            assert answer["action"] is None and answer["resolved"]["canonical_action"] is None


@pytest.mark.parametrize("field", FLAT_FIELDS)
async def test_a_flat_field_beside_a_canonical_action_is_refused_with_its_new_place(field: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        for action in ACTIONS:
            answer = await world.ask({"action": action, field: "x"})
            assert answer["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
            hints = {hint["field"]: hint["hint"] for hint in answer["error"]["details"]["fields"]}
            assert hints[field] == f"Use {'.'.join(FLAT_FIELDS[field])}."


def test_a_field_given_flat_and_nested_is_refused() -> None:
    with pytest.raises(ContractFault) as caught:
        rewrite({"action": "run", "command": "ls", "execution": {"command": "pwd"}})
    assert caught.value.code == "PM_TERM_INVALID_PAYLOAD"
    assert caught.value.details["fields"][0]["field"] == "command"


def test_an_alias_may_name_its_mode_and_carry_nested_fields() -> None:
    made = rewrite({"action": "run", "invocation": {"mode": "headless"}, "execution": {"command": "ls"}})
    assert made["invocation"] == {"mode": "headless", "intent": "execute_command"}


def test_an_alias_with_a_contradicting_intent_is_refused() -> None:
    with pytest.raises(ContractFault) as caught:
        rewrite({"action": "create", "invocation": {"intent": "execute_command"}})
    assert caught.value.details["fields"][0]["field"] == "invocation.intent"


@pytest.mark.parametrize(
    ("action", "legacy", "code"),
    [
        ("execute", "run", None),
        ("execute", "kill", "PM_TERM_INVALID_PAYLOAD"),
        ("execute", "spawn", "PM_TERM_INVALID_ACTION"),
        ("run", "run", None),
        ("run", "send", "PM_TERM_INVALID_PAYLOAD"),
        ("list", "list", None),
        ("list", "create", "PM_TERM_INVALID_PAYLOAD"),
    ],
)
def test_what_a_bridge_says_it_translated_must_map_to_the_action(action: str, legacy: str, code: str | None) -> None:
    raw = {"action": action, "compat": {"legacy_action": legacy}}
    resolution, fault = resolve(raw, "memory_terminal_interactive", "compat")
    assert (fault.code if fault else None) == code
    if code is None and legacy != "list":
        assert resolution.alias_applied and resolution.legacy_action == legacy


def test_the_strict_stage_refuses_what_a_bridge_translated_too() -> None:
    raw = {"action": "execute", "compat": {"legacy_action": "run"}}
    _, fault = resolve(raw, "memory_terminal_interactive", "strict")
    assert fault is not None and fault.code == "PM_TERM_INVALID_ACTION"


async def test_a_create_translated_elsewhere_must_still_only_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        answer = await world.ask(
            {
                "action": "execute",
                "invocation": {"mode": "interactive", "intent": "execute_command"},
                "execution": {"command": "ls"},
                "compat": {"legacy_action": "create"},
            }
        )
        assert answer["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"
        assert answer["error"]["details"]["fields"][0]["field"] == "invocation.intent"


@pytest.mark.parametrize(
    ("value", "stage"),
    [(None, "compat"), ("", "compat"), ("compat", "compat"), ("WARN", "warn"), ("strict", "strict"), ("off", "strict")],
)
def test_the_stage_comes_from_the_connection_and_nonsense_is_the_strictest(value: str | None, stage: Stage) -> None:
    assert parse_stage({} if value is None else {"WSH_ALIAS_STAGE": value}) == stage


@pytest.mark.parametrize(
    ("tool", "action", "accepted"),
    [
        ("memory_terminal", "run", True),
        ("memory_terminal", "read_output", True),
        ("memory_terminal", "kill", True),
        ("memory_terminal", "list", True),
        ("memory_terminal", "create", False),
        ("memory_terminal", "send", False),
        ("memory_terminal", "close", False),
        ("memory_terminal", "execute", False),
        ("memory_terminal_vscode", "create", True),
        ("memory_terminal_vscode", "send", True),
        ("memory_terminal_vscode", "close", True),
        ("memory_terminal_vscode", "list", True),
        ("memory_terminal_vscode", "run", False),
        ("memory_terminal_vscode", "kill", False),
        ("memory_terminal_vscode", "read_output", False),
    ],
)
def test_a_legacy_tool_takes_its_own_actions_and_points_to_the_canonical_tool(
    tool: Any, action: str, accepted: bool
) -> None:
    _, fault = resolve({"action": action}, tool, "compat")
    assert (fault is None) is accepted
    if fault is not None:
        assert fault.code == "PM_TERM_INVALID_ACTION"
        assert "memory_terminal_interactive" in fault.details["migration_hint"]


@pytest.mark.parametrize("tool", ["memory_terminal", "memory_terminal_vscode"])
@pytest.mark.parametrize("action", ["run", "create", "list"])
def test_a_legacy_tool_is_gone_in_the_strict_stage(tool: Any, action: str) -> None:
    _, fault = resolve({"action": action}, tool, "strict")
    assert fault is not None and fault.code == "PM_TERM_INVALID_ACTION"
    assert fault.details["allowed_actions"] == list(ACTIONS)


async def test_memory_terminal_is_headless_and_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        blocked = await world.ask({"action": "run", "command": "rm -r x"}, tool="memory_terminal")
        assert blocked["resolved"]["mode"] == "headless"
        assert blocked["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
        mixed = await world.ask(
            {"action": "run", "command": "ls", "invocation": {"mode": "interactive"}}, tool="memory_terminal"
        )
        assert mixed["error"]["code"] == "PM_TERM_INVALID_MODE"
        assert mixed["error"]["details"]["allowed_modes"] == ["headless"]
        other = await world.ask({"action": "run", "command": "ls", "terminal_id": "t"}, tool="memory_terminal")
        assert other["error"]["code"] == "PM_TERM_INVALID_PAYLOAD"


async def test_memory_terminal_vscode_is_interactive_and_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path, environ={"PM_TERM_ADAPTER_MODE": "bundled"}) as world:
        opened_ = await world.ask({"action": "create", "name": "x"}, tool="memory_terminal_vscode")
        assert opened_["resolved"]["mode"] == "interactive"
        assert opened_["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
        mixed = await world.ask({"action": "create", "invocation": {"mode": "headless"}}, tool="memory_terminal_vscode")
        assert mixed["error"]["code"] == "PM_TERM_INVALID_MODE"
        assert mixed["error"]["details"]["allowed_modes"] == ["interactive"]


def test_true_aliases_are_those_that_are_no_canonical_name() -> None:
    assert set(TRUE_ALIASES) == {"run", "send", "create", "kill", "close"}
