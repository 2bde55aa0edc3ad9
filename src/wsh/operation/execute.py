"""One program without a shell, behind the gate of the caller's ALLOWED_COMMANDS."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import Json, operation
from wsh.wire.model import Model


class ExecuteParams(Model):
    command: str = Field(min_length=1)
    cwd: str | None = None
    timeout_ms: int | None = Field(default=None, ge=1)


@operation(errors=("forbidden", "not_found", "capability_missing", "request_timeout"))
async def execute_command(
    context: Context, params: ExecuteParams
) -> Annotated[Json, "The exit code, and the newest output of both streams."]:
    """Run one program to its end, without a shell and a terminal."""
    service = await context.rooms.execute.get()
    return await service.run(params.command, params.cwd, context.governed, params.timeout_ms, context.progress)
