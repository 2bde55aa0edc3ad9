"""One program without a shell, behind the gate of the caller's ALLOWED_COMMANDS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.leaving import check_leaving, run_outside
from wsh.operation.operation import Json, operation
from wsh.sandbox.denied import find_denied
from wsh.wire.model.base import Model
from wsh.wire.tool import INVALID_REQUEST, ToolFailure

if TYPE_CHECKING:
    from wsh.contract.execute_command import ExecuteCommand


class ExecuteParams(Model):
    """Either a command that shall run, or `output_of` an earlier one whose answer left something out."""

    command: str | None = Field(default=None, min_length=1)
    cwd: str | None = None
    timeout_ms: int | None = Field(default=None, ge=1)
    output_of: str | None = Field(default=None, min_length=1)
    stream: Literal["stdout", "stderr"] = "stdout"
    from_line: int = Field(default=1, ge=1)
    search: str | None = Field(default=None, min_length=1)
    sandbox: Literal["off"] | None = None
    """Ask a person to run it without the sandbox that agents get; with `reason`."""
    reason: str | None = Field(default=None, max_length=2000)


@operation(errors=("forbidden", "not_found", "capability_missing", "request_timeout"), family="exec")
async def execute_command(
    context: Context, params: ExecuteParams
) -> Annotated[Json, "The exit code, and the newest output of both streams."]:
    """Run one program to its end, without a shell and a terminal, or read what an earlier answer left out."""
    service = await context.rooms.execute.get()
    leaving = check_leaving(params.sandbox, params.reason)
    if (params.command is None) == (params.output_of is None):
        raise ToolFailure(INVALID_REQUEST, "Give either command or output_of.", hint="output_of reads; command runs.")
    if params.output_of is not None:
        if leaving:
            raise ToolFailure(INVALID_REQUEST, "Reading leaves no sandbox.", hint="Leave sandbox and reason out.")
        return service.read(params.output_of, params.stream, params.from_line, params.search, context.governed)
    assert params.command is not None
    agents = (await context.rooms.sandbox.load()).agents
    if leaving:
        return await _execute_outside(context, params, service, None if agents is None else agents.name)
    fields = await service.run(params.command, params.cwd, context.governed, params.timeout_ms, context.progress)
    if agents is not None and fields["exit_code"]:
        denied = find_denied(agents.name, f"{fields['stdout']}\n{fields['stderr']}")
        if denied is not None:
            fields["sandbox_denied"] = denied
    return fields


async def _execute_outside(
    context: Context, params: ExecuteParams, service: ExecuteCommand, leaves: str | None
) -> Json:
    """What the gate lets through, after a person's yes. It has a terminal there, so both streams are one."""
    assert params.command is not None and params.reason is not None
    argv, folder = service.admit(params.command, params.cwd, context.governed)
    wait_ms = service.timeout_ms if params.timeout_ms is None else params.timeout_ms
    told = await run_outside(context, argv, folder, leaves, params.reason, wait_ms)
    return {
        "exit_code": told["exit_code"],
        "stdout": str(told["output"]).replace("\r\n", "\n"),
        "stderr": "",
        "outside": told["outside"],
    }
