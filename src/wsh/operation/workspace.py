"""The workspace tools, and the index moved between machines."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import Json, operation
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
    errors=("not_found", "conflict", "capability_missing", "request_timeout", "forbidden", "resource_limit_reached"),
)
async def call_workspace(context: Context, params: ToolParams) -> Annotated[Json, "What the tool found."]:
    """One of the workspace tools: search, show_file, index_build, index_status, check_status, workspace_status."""
    from wsh.workspace.surroundings import ToolContext
    from wsh.workspace.tool import call_tool, perform

    def tell(message: str, phase: str) -> None:
        context.progress(message, phase=phase)

    service = await context.rooms.workspace.get()
    around = ToolContext(context.governed.cwd, tell, context.governed.environ)
    if params.checked:
        return await perform(service, params.tool, cast(Json, params.arguments.root), around)
    return await call_tool(service, params.tool, params.arguments.root, around)


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
