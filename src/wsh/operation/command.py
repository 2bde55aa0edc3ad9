"""Commands of an integrated shell: those that ran, what they printed, and what the session does now."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from wsh.operation.context import OnSession
from wsh.operation.operation import Json, operation
from wsh.operation.screen import Count
from wsh.session.record.playback import read_output_page
from wsh.wire.error import CommandNotFound, InvalidRequest
from wsh.wire.model.base import Format, Model
from wsh.wire.model.command import CommandInfo, CommandOutput, StateAnswer

_ONE = ("session_not_found",)
_COMMAND = (*_ONE, "command_not_found")


class CommandParams(Model):
    id: Count


class OutputPart(Model):
    """Which part of a command's output."""

    format: Format = "plain"
    offset: Annotated[Count, Field(description="The first line, or match, to give.")] = 0
    limit: Count = 1000
    search: Annotated[str, Field(description="Only lines with this text.", max_length=4096)] | None = None
    regex: Annotated[str, Field(description="Only lines that match.", max_length=4096)] | None = None


class OutputParams(OutputPart):
    id: Count


@operation(manner="reads", errors=_ONE)
async def list_commands(on: OnSession) -> Annotated[list[Json], list[CommandInfo]]:
    """What ran here."""
    return [command.to_wire() for command in on.session.history.list_commands()]


@operation(manner="reads", errors=_COMMAND, missing=CommandNotFound)
async def get_command(on: OnSession, params: CommandParams) -> Annotated[Json, CommandInfo]:
    """One command."""
    return on.session.history.get_command(params.id).to_wire()


@operation(manner="waits", errors=(*_COMMAND, "invalid_format", "invalid_pattern"), missing=CommandNotFound)
async def get_command_output(on: OnSession, params: OutputParams) -> Annotated[Json, CommandOutput]:
    """What it printed, by line or by search."""
    if params.search is not None and params.regex is not None:
        raise InvalidRequest("Give either search or regex.", hint="search is plain text, regex a pattern.")
    page = await read_output_page(
        on.session,
        on.session.history.get_command(params.id),
        offset=params.offset,
        limit=params.limit,
        styled=params.format == "styled",
        search=params.search,
        regex=params.regex,
    )
    shown: Json = {"lines": page.lines, "offset": page.offset, "total": page.total}
    if page.numbers is not None:
        shown |= {"numbers": page.numbers, "matches": page.matches}
    return shown | {"missing_bytes": page.missing_bytes}


@operation(manner="reads", errors=(*_ONE, "keeper_gone"))
async def get_state(on: OnSession) -> Annotated[Json, StateAnswer]:
    """What it runs and what it waits for."""
    state: Json = (await on.session.look()).to_wire()
    last = on.session.input.last
    ago = None
    if last is not None:
        ago = {"by": last[0].kind, "name": last[0].id, "ago_ms": int((time.monotonic() - last[1]) * 1000)}
    waits = on.session.input.run_waits
    wanted = None if waits is None else {"by": waits[0].id, "kind": waits[0].kind, "command": waits[1]}
    return state | {"taken_by": on.session.input.taken_by, "run_waits": wanted, "last_input": ago}
