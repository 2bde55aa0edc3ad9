"""Routes of the workspace that are no tools: moving an index between machines. For the owner alone."""

from __future__ import annotations

from pydantic import Field

from wsh.http.error import ToolRefused
from wsh.http.rooms import ApiCall
from wsh.http.route import Answer, Route, dump_json
from wsh.wire.model import Model
from wsh.wire.tool import ToolFailure


class ArchiveBody(Model):
    """A workspace and an archive, both as absolute paths on the server's machine."""

    workspace: str = Field(pattern=r"^/")
    file: str = Field(pattern=r"^/")


async def export_index(call: ApiCall) -> Answer:
    from wsh.workspace.surroundings import ToolContext

    service = await call.rooms.workspace.get()
    try:
        return Answer(dump_json(await service.export_index(ToolContext("/"), call.body.workspace, call.body.file)))
    except ToolFailure as problem:
        raise ToolRefused(problem) from None


async def import_index(call: ApiCall) -> Answer:
    from wsh.workspace.surroundings import ToolContext

    service = await call.rooms.workspace.get()
    try:
        return Answer(dump_json(await service.import_index(ToolContext("/"), call.body.workspace, call.body.file)))
    except ToolFailure as problem:
        raise ToolRefused(problem) from None


_ERRORS = ("not_found", "forbidden", "conflict", "too_large")

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/workspace/index/export",
        export_index,
        "Write the index of a workspace to an archive on the server's machine.",
        "workspace",
        body=ArchiveBody,
        answer="Where it is, its size, and the sums of its parts.",
        owner_only=True,
        errors=_ERRORS,
        waits=True,
    ),
    Route(
        "POST",
        "/workspace/index/import",
        import_index,
        "Take the index of a workspace from an archive, after verifying it.",
        "workspace",
        body=ArchiveBody,
        answer="Where it came from.",
        owner_only=True,
        errors=_ERRORS,
        waits=True,
    ),
)
