"""The workspace tools, and the index moved between machines."""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

from pydantic import Field

from wsh.host.address import Address, parse_address
from wsh.operation.context import Context
from wsh.operation.forward import Place, forward
from wsh.operation.operation import Json, OperationCall, operation
from wsh.operation.reach import AgentReach
from wsh.operation.sandbox import is_agent
from wsh.wire.error import WshError
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import AnyJson, Model

_ERRORS = ("not_found", "forbidden", "conflict", "too_large")


class ArchiveBody(Model):
    """A workspace and an archive, both as absolute paths on the server's machine."""

    workspace: str = Field(pattern=r"^/")
    file: str = Field(pattern=r"^/")


class ToolArguments(Model):
    arguments: AnyJson


class ToolParams(ToolArguments):
    tool: str
    checked: bool = False
    """The door has checked the arguments against the tool's schema, and keeps the deadline."""


@operation(
    manner="waits",
    errors=(
        "not_found",
        "conflict",
        "capability_missing",
        "request_timeout",
        "forbidden",
        "sandbox_refused",
        "resource_limit_reached",
    ),
    family="workspace",
)
async def call_workspace(context: Context, params: ToolParams) -> Annotated[Json, "What the tool found."]:
    """One of the workspace tools: search, show_file, index_build, index_status, check_status, workspace_status."""
    from wsh.workspace.surroundings import ToolContext
    from wsh.workspace.tool import call_tool, perform

    def tell(message: str, phase: str) -> None:
        context.progress(message, phase=phase)

    given = params.arguments.root
    far = _find_far_hit(params.tool, given)
    if far is not None:
        return await _ask_host(context, far.host or "", "show_file", {**cast(JsonObject, given), "id": far.name})
    service = await context.rooms.workspace.get()
    around = ToolContext(context.governed.cwd, tell, context.governed.environ)
    if is_agent(context.caller):
        around.reach = AgentReach(context.rooms.registry.sandboxes.ground, await context.rooms.sandbox.load())
    if params.checked:
        found = await perform(service, params.tool, cast(JsonObject, given), around)
    else:
        found = await call_tool(service, params.tool, given, around)
    if params.tool == "search" and "transcripts" in found["searched"] and "cursor" not in cast(JsonObject, given):
        return await _join_transcripts(context, cast(JsonObject, given), found)
    return found


_FOR_TRANSCRIPTS = frozenset(
    {"query", "match", "kind", "exitCode", "since", "until", "top", "contextLines", "explain", "timeoutMs"}
)


def _find_far_hit(tool: str, arguments: object) -> Address | None:
    """The hit of another machine that is to be shown."""
    id = arguments.get("id") if tool == "show_file" and isinstance(arguments, dict) else None
    return parse_address(id) if isinstance(id, str) and "/" in id else None


async def _ask_host(
    context: Context, host: str, tool: str, arguments: JsonObject, deadline_s: float | None = None
) -> JsonObject:
    params = ToolParams(tool=tool, arguments=AnyJson(arguments))
    call = OperationCall(call_workspace, params, context.caller)
    return cast(JsonObject, await forward(call, Place(host, None, params), context.rooms, deadline_s))


async def _join_transcripts(context: Context, arguments: JsonObject, found: JsonObject) -> JsonObject:
    """With what was printed on other machines. Their hits say from where: `gpu1/train`, and an id that `show_file` takes."""
    rooms = context.rooms
    if context.caller.via or not len(rooms.hosts):
        return found
    await rooms.hosts.refresh()
    named = arguments.get("session") or []
    addresses = [parse_address(one) for one in ([named] if isinstance(named, str) else named) if "/" in one]
    asked = {
        state.name: [address.name for address in addresses if address.host == state.name]
        for state in rooms.hosts.list_hosts()
        if (state.name in {address.host for address in addresses} if named else state.same_as is None)
    }
    narrowed = {key: value for key, value in arguments.items() if key in _FOR_TRANSCRIPTS} | {"mode": "transcripts"}
    own_ms = arguments.get("timeoutMs") or arguments.get("timeout_ms")
    if own_ms is not None:
        narrowed["timeoutMs"] = own_ms
    # A search that may take longer by its own deadline may do so there, too.
    deadline_s = (rooms.settings.get_int("hosts.list_timeout_ms") + (own_ms or 0)) / 1000

    async def ask(host: str, sessions: list[str]) -> JsonObject:
        return await _ask_host(
            context, host, "search", narrowed | ({"session": sessions} if sessions else {}), deadline_s
        )

    answers = await asyncio.gather(*(ask(*each) for each in asked.items()), return_exceptions=True)
    hits, warnings = list(found["hits"]), list(found["warnings"])
    for host, answer in zip(asked, answers, strict=True):
        if isinstance(answer, WshError):
            warnings.append({"code": "HOST_NOT_SEARCHED", "message": f"{host} was not searched: {answer.message}"})
        elif isinstance(answer, BaseException):
            raise answer
        else:
            for hit in answer["hits"]:
                hits.append(hit | {"id": f"{host}/{hit['id']}", "transcript": hit["transcript"] | {"host": host}})
            if answer["nextCursor"] is not None:
                warnings.append({"code": "MORE_AT_HOST", "message": f"{host} has more hits than are shown here."})
    hits.sort(key=lambda hit: -hit["score"])
    return found | {"hits": hits, "warnings": warnings}


@operation(who="owner", manner="waits", errors=_ERRORS)
async def export_index(
    context: Context, params: ArchiveBody
) -> Annotated[Json, "Where it is, its size, and the sums of its parts."]:
    """Write the index of a workspace to an archive on the server's machine."""
    from wsh.workspace.surroundings import ToolContext

    service = await context.rooms.workspace.get()
    return await service.export_index(ToolContext("/"), params.workspace, params.file)


@operation(who="owner", manner="waits", errors=_ERRORS)
async def import_index(context: Context, params: ArchiveBody) -> Annotated[Json, "Where it came from."]:
    """Take the index of a workspace from an archive, after verifying it."""
    from wsh.workspace.surroundings import ToolContext

    service = await context.rooms.workspace.get()
    return await service.import_index(ToolContext("/"), params.workspace, params.file)
