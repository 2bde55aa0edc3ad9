"""What a session shows and has shown."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from wsh.operation.context import OnSession
from wsh.operation.operation import Json, operation
from wsh.wire.error import InvalidRequest
from wsh.wire.model.base import Format, Model
from wsh.wire.model.screen import Screen, Scrollback

Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]


class Formatted(Model):
    format: Format = "styled"


class ScrollbackParams(Formatted):
    offset: Annotated[Count, Field(description="Lines to leave out, counted from the newest.")] = 0
    limit: Count = 100
    since_line: Annotated[Count, Field(description="Begin at this absolute line instead.")] | None = None


@operation(manner="reads", errors=("session_not_found", "invalid_format"))
async def get_screen(on: OnSession, params: Formatted) -> Annotated[Json, Screen]:
    """What is on its screen now."""
    return on.rooms.stages.read_screen(on.session, params.format)


@operation(manner="reads", errors=("session_not_found", "invalid_format"))
async def get_scrollback(on: OnSession, params: ScrollbackParams) -> Annotated[Json, Scrollback]:
    """The last lines, or those since a given one."""
    if params.since_line is not None and params.offset:
        raise InvalidRequest(
            "Give either offset or since_line.",
            hint="offset counts back from the newest line, since_line from a number.",
        )
    styled = params.format == "styled"
    page = on.session.terminal.scrollback(params.offset, params.limit, styled=styled, since_line=params.since_line)
    return page.to_wire()
