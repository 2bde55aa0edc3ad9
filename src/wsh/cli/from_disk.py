"""Reading a workspace's index: by the server if one runs, else in this process, from disk. No server is started for it."""

from __future__ import annotations

from wsh.cli.request import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wsh.wire.json.object import JsonObject
    from wsh.workspace.service import WorkspaceService


def read_workspace(tool: str, arguments: JsonObject, doing: str = "") -> JsonObject:
    """What a workspace tool answers. Raises WshError."""

    async def ask(service: WorkspaceService) -> JsonObject:
        from wsh.workspace.surroundings import ToolContext
        from wsh.workspace.tool import call_tool

        return await call_tool(service, tool, arguments, ToolContext("/"))

    return _ask_server_or(ask, f"/workspace/{tool}", arguments, doing)


def export_index(workspace: str, file: str) -> JsonObject:
    async def export(service: WorkspaceService) -> JsonObject:
        from wsh.workspace.surroundings import ToolContext

        return await service.export_index(ToolContext("/"), workspace, file)

    body: JsonObject = {"workspace": workspace, "file": file}
    return _ask_server_or(export, "/workspace/index/export", body, "exporting")


def _ask_server_or(
    read: Callable[[WorkspaceService], Awaitable[JsonObject]], path: str, body: JsonObject, doing: str
) -> JsonObject:
    try:
        found: JsonObject = call("POST", path, json_body=body, start=False, doing=doing)
        return found
    except Exception as problem:
        if getattr(problem, "code", "") != "server_gone":
            raise
    import asyncio

    return asyncio.run(_read(read))


async def _read(read: Callable[[WorkspaceService], Awaitable[JsonObject]]) -> JsonObject:
    from wsh.http.error import ToolRefused
    from wsh.wire.error import from_wire
    from wsh.wire.setting import load
    from wsh.wire.system.place import find_places
    from wsh.wire.tool import ToolFailure
    from wsh.workspace.service import WorkspaceService

    places = find_places()
    service = WorkspaceService(places, load(places.config_file))
    try:
        return await read(service)
    except ToolFailure as problem:
        raise from_wire(ToolRefused(problem).to_wire()) from None  # as the server would have answered
    finally:
        await service.aclose()
