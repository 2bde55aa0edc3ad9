"""Waiting for one session, or for any."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from wsh.operation.context import Context, OnSession, Rooms
from wsh.operation.forward import Forwarding
from wsh.operation.operation import Json, operation
from wsh.operation.screen import Count, Formatted
from wsh.operation.session import split_tags
from wsh.session.session import Session
from wsh.session.wait.wait import WaitResult, WaitSpec
from wsh.session.wait.wait_any import wait_for_any
from wsh.wire.error import SessionNotFound
from wsh.wire.model.base import Format, Model, Shown
from wsh.wire.model.screen import IdleAnswer

Milliseconds: TypeAlias = Annotated[int, Field(ge=0, le=86_400_000)]
_AGAIN = Forwarding(repeatable=True)
_WAIT = ("idle_timeout", "invalid_format", "invalid_pattern")


class WaitParams(Model):
    timeout_ms: Annotated[Milliseconds, Field(description="Quiet for this long.")] | None = None
    max_wait_ms: Annotated[Milliseconds, Field(description="Give up after this long (408).")] = 30_000
    last_generation: Annotated[Count, Field(description="First wait for output newer than this.")] | None = None
    fresh: Annotated[bool, Field(description="Wait for a whole silence even if it is quiet already.")] = False
    text: Annotated[str, Field(description="Or: this text is printed.", max_length=10_000)] | None = None
    regex: Annotated[str, Field(description="Or: something that matches is printed.", max_length=10_000)] | None = None
    command: Annotated[bool, Field(description="Or: a command of the shell ended.")] = False
    prompt: Annotated[bool, Field(description="Or: the shell is at its prompt.")] = False
    input_wanted: Annotated[bool, Field(description="Or: the program waits for input.")] = False
    exit: Annotated[bool, Field(description="Or: the program ended (which ends every wait).")] = False


class IdleParams(WaitParams, Formatted):
    """Conditions, and how the screen is shown."""


class WaitAnswer(Shown):
    generation: int
    ended_by: str
    matched: str | None = None
    command_id: int | None = None


class AnyIdleParams(IdleParams):
    tag: str | None = None
    last_session: Annotated[str, Field(description="The session that the last call gave.")] | None = None


@operation(manner="waits", errors=("session_not_found", *_WAIT), forwarding=_AGAIN)
async def await_idle(on: OnSession, params: IdleParams) -> Annotated[Json, IdleAnswer]:
    """Wait until it is quiet, or for something else."""
    result = await on.session.wait(_make_spec(on, params, on.session))
    return _answer(on.rooms, on.session, result, params.format)


@operation(manner="waits", errors=("session_not_found", "idle_timeout", "invalid_pattern"), forwarding=_AGAIN)
async def await_state(on: OnSession, params: WaitParams) -> Annotated[Json, WaitAnswer]:
    """The same, without the screen."""
    return _name(await on.session.wait(_make_spec(on, params, on.session)))


@operation(manner="waits", errors=(*_WAIT, "no_sessions", "invalid_tag"), forwarding=_AGAIN)
async def await_any_idle(context: Context, params: AnyIdleParams) -> Annotated[Json, IdleAnswer]:
    """Wait until any session is quiet, each in its turn."""
    rooms = context.rooms
    session, result = await wait_for_any(
        rooms.registry, _make_spec(context, params), tags=split_tags(params.tag), last_session=params.last_session
    )
    return {"session": session.name, **_answer(rooms, session, result, params.format)}


def _make_spec(context: Context, params: WaitParams, session: Session | None = None) -> WaitSpec:
    """Events count since the caller's last input: a quick program has printed before the wait begins."""
    rooms = context.rooms
    return WaitSpec(
        quiet_ms=params.timeout_ms,
        text=params.text,
        regex=params.regex,
        command=params.command,
        prompt=params.prompt,
        input_wanted=params.input_wanted,
        exit=params.exit,
        generation=params.last_generation,
        events_since=None if session is None else rooms.marks.find_input(context.caller, session.sid),
        fresh=params.fresh,
        max_wait_ms=rooms.cap_wait(params.max_wait_ms),
    )


def _answer(rooms: Rooms, session: Session, result: WaitResult, format: Format) -> Json:
    if rooms.registry.find_session(session.name) is not session:
        raise SessionNotFound(session.name)
    return {
        "screen": rooms.stages.read_screen(session, format),
        "scrollback_lines": session.terminal.total_lines - session.terminal.first_line,
        "last_activity_ms": session.last_activity_ms,
        **_name(result),
    }


def _name(result: WaitResult) -> Json:
    told: Json = {"generation": result.generation, "ended_by": result.ended_by}
    if result.matched is not None:
        told["matched"] = result.matched
    if result.command_id is not None:
        told["command_id"] = result.command_id
    return told
