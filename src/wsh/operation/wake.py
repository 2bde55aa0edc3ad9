"""Waking an agent: a line of the person's that is typed into a session when a command of another one has ended."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wsh.inbox.wake import Wake
from wsh.operation.context import Context, OnSession
from wsh.operation.forward import Forwarding
from wsh.operation.operation import operation
from wsh.wire.model.base import Model, Shown

_NAMES = ("id", "session", "when")


class WakeRequest(Model):
    when: Annotated[str, Field(description="The session whose next end of a command is waited for.")]
    line: Annotated[str, Field(description="Typed as it is, and Enter.")]


class WakeId(Model):
    id: str


class WakeInfo(Shown):
    id: str
    session: str
    """The session that is typed into."""
    when: str
    line: str
    state: Literal["waiting", "due", "typing", "typed", "dropped"]
    """`due`: the command has ended, and the line cannot be typed yet."""
    why: str
    """What a line that is due waits for, or why it was dropped."""
    set_at: float
    changed_at: float
    host: str | None = None
    """The host that it is on; null for this server."""


class WakeList(Shown):
    wakes: list[WakeInfo]


@operation(
    who="owner",
    errors=("session_not_found", "session_exited", "resource_limit_reached"),
    forwarding=Forwarding(addresses=("when",), names=_NAMES),
)
async def set_wake(on: OnSession, params: WakeRequest) -> WakeInfo:
    """Type a line into it, once, when a command of another session has ended; never onto a line in use."""
    when = on.rooms.registry.get_session(params.when)
    return _show(await on.rooms.wakes.set(on.session, when, params.line))


@operation(who="owner", manner="reads", forwarding=Forwarding(names=_NAMES, joined="wakes"))
async def list_wakes(context: Context) -> WakeList:
    """Lines that wait to be typed, and what became of earlier ones."""
    return WakeList(wakes=[_show(wake) for wake in context.rooms.wakes.list_wakes()])


@operation(who="owner", errors=("not_found",), forwarding=Forwarding(addresses=("id",), names=_NAMES))
async def cancel_wake(context: Context, params: WakeId) -> WakeInfo:
    """Take back a line that has not been typed."""
    return _show(await context.rooms.wakes.cancel(params.id))


def _show(wake: Wake) -> WakeInfo:
    return WakeInfo(
        id=wake.id,
        session=wake.session,
        when=wake.when,
        line=wake.line,
        state=wake.state,
        why=wake.why,
        set_at=wake.set_at,
        changed_at=wake.changed_at,
    )
