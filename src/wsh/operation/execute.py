"""One program without a shell, behind the gate of the caller's ALLOWED_COMMANDS."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import Json, operation
from wsh.wire.model import Model
from wsh.wire.tool import INVALID_REQUEST, ToolFailure


class ExecuteParams(Model):
    """Either a command that shall run, or `output_of` an earlier one whose answer left something out."""

    command: str | None = Field(default=None, min_length=1)
    cwd: str | None = None
    timeout_ms: int | None = Field(default=None, ge=1)
    output_of: str | None = Field(default=None, min_length=1)
    stream: Literal["stdout", "stderr"] = "stdout"
    from_line: int = Field(default=1, ge=1)
    search: str | None = Field(default=None, min_length=1)


@operation(errors=("forbidden", "not_found", "capability_missing", "request_timeout"))
async def execute_command(
    context: Context, params: ExecuteParams
) -> Annotated[Json, "The exit code, and the newest output of both streams."]:
    """Run one program to its end, without a shell and a terminal, or read what an earlier answer left out."""
    service = await context.rooms.execute.get()
    if (params.command is None) == (params.output_of is None):
        raise ToolFailure(INVALID_REQUEST, "Give either command or output_of.", hint="output_of reads; command runs.")
    if params.output_of is not None:
        return service.read(params.output_of, params.stream, params.from_line, params.search, context.governed)
    assert params.command is not None
    return await service.run(params.command, params.cwd, context.governed, params.timeout_ms, context.progress)
