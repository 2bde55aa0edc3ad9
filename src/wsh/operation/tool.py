"""A tool of the MCP door, called by another server for its own client: where the session is, the tool runs."""

from __future__ import annotations

from typing import Annotated

from wsh.operation.context import Context
from wsh.operation.operation import Json, operation
from wsh.wire.error import CapabilityMissing, InvalidRequest
from wsh.wire.model.base import AnyJson, Model
from wsh.wire.tool import ToolFailure


class ForwardedTool(Model):
    tool: str
    arguments: AnyJson
    timeout_ms: int


@operation(manner="waits", errors=("capability_missing",), family="terminal")
async def call_tool(context: Context, params: ForwardedTool) -> Annotated[Json, "`{structured, text, is_error}`"]:
    """Run a terminal tool for a client of another server."""
    run = context.rooms.run_tool
    if run is None:
        raise CapabilityMissing("This server has no tools.")
    arguments = params.arguments.root
    if not isinstance(arguments, dict):
        raise InvalidRequest("The arguments are not an object.")
    try:
        outcome = await run(params.tool, arguments, context.caller, params.timeout_ms, context.progress)
    except ToolFailure as failure:
        return {"structured": failure.to_payload(), "text": None, "is_error": True}
    return {"structured": outcome.structured, "text": outcome.text, "is_error": outcome.is_error}
