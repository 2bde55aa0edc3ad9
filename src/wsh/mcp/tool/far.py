"""Tools about a session on another machine: the tool itself runs there, for the client here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from wsh.host.address import Address, parse_address
from wsh.mcp.registry import Registry, to_json
from wsh.mcp.tool.lean_text import adopt_text
from wsh.operation.forward import Place, adopt_names, check_far_sandbox, forward
from wsh.operation.operation import OperationCall
from wsh.operation.sandbox import choose_profile, is_agent
from wsh.operation.tool import ForwardedTool, call_tool
from wsh.wire.error import InvalidRequest, SandboxRefused
from wsh.wire.json.handshake import FAMILIES
from wsh.wire.model.base import AnyJson
from wsh.wire.tool import Family, Progress, ToolOutcome

if TYPE_CHECKING:
    from wsh.operation.context import Rooms
    from wsh.wire.caller import Caller
    from wsh.wire.json.object import JsonObject
    from wsh.wire.tool import CallContext

_SLACK_S = 15.0


def find_host(arguments: JsonObject, names: tuple[str, ...]) -> tuple[str, JsonObject] | None:
    """The machine that the arguments are about, and the arguments as they are meant there; None for this server."""
    given: dict[str, Address] = {
        name: parse_address(arguments[name])
        for name in names
        if isinstance(arguments.get(name), str) and "/" in arguments[name]
    }
    if not given:
        return None
    hosts = {address.host for address in given.values()}
    first = names[0]
    if len(hosts) > 1 or (first in arguments and first not in given):
        raise InvalidRequest("The arguments name sessions of several machines.", hint="All must be on the same one.")
    (host,) = hosts
    assert host is not None
    left = {name: value for name, value in arguments.items() if name not in given}
    return host, left | {name: address.name for name, address in given.items() if address.name}


async def call_far(
    rooms: Rooms,
    tool: str,
    host: str,
    arguments: JsonObject,
    context: CallContext,
    names: tuple[str, ...],
    *,
    repeatable: bool,
) -> ToolOutcome:
    params = ForwardedTool(tool=tool, arguments=AnyJson(arguments), timeout_ms=context.timeout_ms)
    call = OperationCall(call_tool, params, context.caller, host=host)
    call.check()
    if _captures(tool, arguments):
        rooms.far_leases.note(context.caller, host)
    if is_agent(context.caller):
        arguments = await _hold(rooms, tool, host, arguments, context)
        params = params.model_copy(update={"arguments": AnyJson(arguments)})
    told = cast(
        "JsonObject",
        await forward(
            call,
            Place(host, None, params),
            rooms,
            context.timeout_ms / 1000 + _SLACK_S,
            progress=context.progress,
            repeatable=repeatable,
        ),
    )
    structured = adopt_names(told["structured"], host, names)
    text = told["text"]
    if text is not None and structured is None:
        text = adopt_text(text, tool, host)
    elif text is not None and structured is not None and structured != told["structured"]:
        text = to_json(structured)
    return ToolOutcome(structured, text, told["is_error"])  # type: ignore[arg-type]  # JSON


_TYPING = frozenset({"wsh_send_input", "wsh_run_command", "run", "type"})


def _acts(tool: str, arguments: JsonObject) -> bool:
    """Whether the tool types into a session, or takes the keys that are typed there."""
    return tool in _TYPING or _captures(tool, arguments)


def _captures(tool: str, arguments: JsonObject) -> bool:
    return tool == "wsh_input_mode" and arguments.get("mode") == "capture"


async def _hold(rooms: Rooms, tool: str, host: str, arguments: JsonObject, context: CallContext) -> JsonObject:
    """The sandbox that agents get here, also for what they open and type at a host."""
    if tool == "wsh_create_session" or (tool == "sessions" and arguments.get("action") == "open"):
        policy = await rooms.sandbox.load()
        if policy.agents is not None:
            profile = choose_profile(context.caller, arguments.get("sandbox"), policy)
            assert profile is not None
            if tool == "sessions":
                raise SandboxRefused(
                    "Sessions of agents are held in a sandbox here, which this tool cannot ask for at a host.",
                    hint="Use wsh_create_session, or ask the person for a session there.",
                )
            return arguments | {"sandbox": profile.name}
    elif _acts(tool, arguments) and "session" in arguments:
        await check_far_sandbox(context.caller, host, str(arguments["session"]), rooms)
    return arguments


@dataclass(frozen=True)
class FarContext:
    """What a tool knows of a caller whose client is connected to another server."""

    caller: Caller
    timeout_ms: int
    deadline: float
    progress: Progress
    """Told to the other server, which tells its client."""
    toolsets: tuple[Family, ...] = FAMILIES


async def run_forwarded(
    registry: Registry, name: str, arguments: JsonObject, caller: Caller, timeout_ms: int, progress: Progress
) -> ToolOutcome:
    """Run a terminal tool for another server. Its arguments are checked here, too."""
    tool = registry.find_tool(name, ("terminal", "lean"))
    if tool is None:
        raise InvalidRequest(f"This host has no tool {name[:80]!r} for sessions.", hint="It may be of another version.")
    problems = tool.validator.find_problems(arguments)
    if problems:
        first = problems[0]
        raise InvalidRequest(f"{first.path!r} {first.message}.", hint=first.hint)
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    context = FarContext(caller, timeout_ms, deadline, progress)
    async with asyncio.timeout(timeout_ms / 1000 + _SLACK_S):
        return await tool.spec.run(tool.validator.normalise(arguments), context)
