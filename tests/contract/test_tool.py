"""The contract's tools and its HTTP handler, as the doors mount them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.contract.request.test_alias import LEGACY
from tests.contract.request.test_validate import ACCEPTED
from tests.support.bridge.scripted import ScriptedDesktop, listening
from tests.support.contract.world import HEADLESS, INTERACTIVE, World, opened, with_keeper
from tests.support.operation.rooms import make_rooms
from wsh.bridge.endpoint import write_endpoint
from wsh.contract.request.stage import STAGES, Stage
from wsh.http.route.contract_status import STATUS, show_contract
from wsh.mcp.call import CallRunner
from wsh.mcp.caller import McpClient
from wsh.mcp.registry import Registry
from wsh.mcp.tool.contract import SCHEMA_VERSION, list_contract_tools
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places
from wsh.wire.tool import ToolOutcome, ToolSpec


def tools(world: World, stage: Stage = "compat") -> dict[str, ToolSpec]:
    rooms = make_rooms(contract=world.contract)
    return {tool.name: tool.bind(rooms) for tool in list_contract_tools(stage)}


async def call(world: World, name: str, arguments: dict[str, Any], request_id: object = 1) -> ToolOutcome:
    """Through the MCP door's own call desk."""
    registry = Registry(tools(world).values())
    tool = registry.find_tool(name)
    assert tool is not None
    caller = Caller("agent", "tester", "token", connection="owner-1", client="test client")
    caller = replace(caller, cwd=world.caller.cwd, environ=world.caller.environ)

    async def emit(*_: object) -> None:
        return None

    desk = CallRunner(queue_size=64, progress_per_second=4)
    return await desk.serve(tool, arguments, McpClient(caller), request_id, {}, emit)


async def test_the_list_has_the_canonical_tool_and_two_adapters_until_the_strict_stage(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        for stage in ("compat", "warn"):
            names = list(tools(world, stage))
            assert names == ["memory_terminal_interactive", "memory_terminal", "memory_terminal_vscode"]
        assert list(tools(world, "strict")) == ["memory_terminal_interactive"]


@pytest.mark.parametrize("stage", STAGES)
async def test_the_schemas_are_schemas_and_refuse_unknown_fields_at_every_level(stage: Stage, tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        for spec in tools(world, stage).values():
            for schema in (spec.input_schema, spec.output_schema):
                assert schema is not None
                jsonschema.Draft202012Validator.check_schema(dict(schema))
            assert spec.input_schema["additionalProperties"] is False
            for part in ("invocation", "correlation", "runtime", "execution", "target", "compat"):
                assert spec.input_schema["properties"][part]["additionalProperties"] is False
            assert spec.schema_version == SCHEMA_VERSION and spec.family == "contract" and len(spec.description) > 100


async def test_what_the_contract_accepts_fits_the_schema(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        schema = dict(tools(world)["memory_terminal_interactive"].input_schema)
        for request in [*ACCEPTED.values(), *LEGACY.values()]:
            jsonschema.validate(request, schema)
        strict = dict(tools(world, "strict")["memory_terminal_interactive"].input_schema)
        for legacy in ("run", "create"):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(LEGACY[legacy], strict)


async def test_bad_arguments_get_the_contracts_own_answer_through_the_mcp_door(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "PM_TERM_INVALID_PAYLOAD"),
            ({"action": 7}, "PM_TERM_INVALID_PAYLOAD"),
            ({"action": "dance"}, "PM_TERM_INVALID_ACTION"),
            ({"action": "list", "invocation": {"mode": "both"}}, "PM_TERM_INVALID_MODE"),
            ({"action": "list", "colour": "red"}, "PM_TERM_INVALID_PAYLOAD"),
            ({"action": "list", "runtime": {"timeout_ms": "x"}}, "PM_TERM_INVALID_PAYLOAD"),
        ]
        for arguments, code in cases:
            outcome = await call(world, "memory_terminal_interactive", arguments)
            assert outcome.is_error and isinstance(outcome.structured, dict)
            assert outcome.structured["error"]["code"] == code
            assert outcome.structured["fallback"]["strategy"]


async def test_every_answer_fits_the_output_schema(places: Places, tmp_path: Path) -> None:
    desktop = ScriptedDesktop()
    async with with_keeper(places) as runner, opened(tmp_path, runner=runner) as world:
        schema = dict(tools(world)["memory_terminal_interactive"].output_schema or {})
        unavailable = await world.interactive("ls", adapter_override="bundled")
        async with listening(desktop) as (_, endpoint):
            write_endpoint(world.info, endpoint)
            answers = [
                unavailable,
                await world.headless("echo hi"),
                await world.headless("sleep", "100", timeout_ms=1),
                await world.headless("rm -rf /"),
                await world.interactive("echo hi"),
                await world.ask({"action": "list"}),
                await world.ask({"action": "dance"}),
                await world.ask({"action": "read_output", "target": {"session_id": "none"}}),
            ]
            answers.append(await world.follow("terminate", answers[2]))
        for answer in answers:
            jsonschema.validate(answer, schema)
        assert {answer["status"] for answer in answers} == {"accepted", "completed", "failed"}


async def test_a_tool_call_runs_in_the_callers_folder_and_belongs_to_the_caller(places: Places, tmp_path: Path) -> None:
    async with with_keeper(places) as runner, opened(tmp_path, runner=runner) as world:
        outcome = await call(
            world,
            "memory_terminal_interactive",
            {"action": "execute", "invocation": HEADLESS, "execution": {"command": "pwd"}},
        )
        assert not outcome.is_error and isinstance(outcome.structured, dict)
        assert outcome.structured["result"]["stdout"] == f"{tmp_path}\n"
        target = outcome.structured["identity"]
        theirs = await call(world, "memory_terminal_interactive", {"action": "read_output", "target": target})
        assert not theirs.is_error
        mine = await world.ask({"action": "read_output", "target": target})
        assert mine["error"]["code"] == "PM_TERM_NOT_FOUND"
        legacy = await call(world, "memory_terminal", {"action": "run", "command": "echo", "args": ["old"]})
        assert isinstance(legacy.structured, dict) and legacy.structured["result"]["stdout"] == "old\n"


async def test_over_http_each_code_has_one_status_and_accepted_is_202(places: Places, tmp_path: Path) -> None:
    async with with_keeper(places) as runner, opened(tmp_path, runner=runner) as world:

        async def post(body: object) -> tuple[int, dict[str, Any]]:
            shown = show_contract(await world.contract.handle(body, world.caller))
            return shown.status, json.loads(shown.body)

        status, answer = await post({"action": "execute", "invocation": HEADLESS, "execution": {"command": "true"}})
        assert (status, answer["status"]) == (200, "completed")
        sleep = {"command": "sleep", "args": ["9"]}
        status, answer = await post(
            {"action": "execute", "invocation": HEADLESS, "execution": sleep, "runtime": {"timeout_ms": 1}}
        )
        assert (status, answer["status"]) == (202, "accepted")
        bodies: list[object] = [[], {}, {"action": "x"}, {"action": "read_output", "target": {"session_id": "s"}}]
        for body in bodies:
            status, answer = await post(body)
            assert status == STATUS[answer["error"]["code"]] >= 400
        interactive = {"action": "execute", "invocation": INTERACTIVE, "execution": {"command": "ls"}}
        status, answer = await post(interactive)
        assert (status, answer["error"]["code"]) == (503, "PM_TERM_GUI_UNAVAILABLE")
