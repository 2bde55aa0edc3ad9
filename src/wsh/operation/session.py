"""Sessions: making, finding, changing, ending."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

from pydantic import Field

from wsh.operation.context import Context, OnSession, Rooms
from wsh.operation.forward import Forwarding
from wsh.operation.operation import Json, operation
from wsh.operation.sandbox import choose_profile, is_agent, refuse_taken
from wsh.sandbox.hold import Holding
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.state import find_word
from wsh.session.state_word import StateWord
from wsh.wire.error import InvalidRequest, SessionNameTaken
from wsh.wire.model.base import Model, Shown
from wsh.wire.model.session import Resize, SessionCreate, SessionInfo, SessionPatch
from wsh.wire.name import check_session_name, check_tag

_ONE = ("session_not_found",)
_NAMED = Forwarding(names=("name",))


class ListParams(Model):
    tag: Annotated[str, Field(description="Tags separated by commas; any of them will do.")] | None = None


class Detached(Shown):
    detached: int
    """How many clients were sent away."""


class Killed(Shown):
    survivors: list[int]
    """Processes that could not be killed."""


async def look_and_describe(rooms: Rooms, session: Session) -> Json:
    """SessionInfo, with the session's state as it is now."""
    return describe(rooms, session, await find_word(session))


def describe(rooms: Rooms, session: Session, state: StateWord = "running") -> Json:
    """SessionInfo. Its size is that of the whole picture, panels included."""
    stage = rooms.stages.find(session)
    return {
        "name": session.name,
        "host": None,
        "server": rooms.server.hostname,
        "pid": session.pid or None,
        "command": session.command,
        "rows": stage.rows if stage else session.rows,
        "cols": stage.cols if stage else session.cols,
        "clients": rooms.clients.count(session),
        "tags": list(session.tags),
        "last_activity_ms": session.last_activity_ms,
        "running": session.running,
        "state": state if session.running else "exited",
        "exit_code": session.exit_code,
        "title": session.title,
        "cwd": session.cwd,
        "journal": session.journal_state,
        "sandbox": None if session.holding is None else show_holding(session.holding),
        "notice": session.notice,
        "unreachable_since": None,
    }


def show_holding(holding: Holding) -> Json:
    """SandboxInfo."""
    return {"profile": holding.profile.name, "backend": holding.backend, "weaker": list(holding.weaker)}


def split_tags(given: str | None) -> list[str] | None:
    if given is None:
        return None
    return [check_tag(tag.strip()) for tag in given.split(",") if tag.strip()] or None


@operation(manner="reads", errors=("invalid_tag",), forwarding=Forwarding(names=("name",), joined=""))
async def list_sessions(context: Context, params: ListParams) -> Annotated[list[Json], list[SessionInfo]]:
    """All sessions, or those with a tag."""
    found = context.rooms.registry.list_sessions(split_tags(params.tag))
    return list(await asyncio.gather(*(look_and_describe(context.rooms, session) for session in found)))


@operation(
    errors=(
        "invalid_session_name",
        "invalid_tag",
        "invalid_env",
        "program_not_found",
        "cwd_not_found",
        "session_name_conflict",
        "session_create_failed",
        "keeper_gone",
        "max_sessions_reached",
        "sandbox_unavailable",
        "sandbox_refused",
    ),
    family="terminal",
    forwarding=Forwarding(addresses=("name",), names=("name",), held=True),
)
async def create_session(context: Context, params: SessionCreate) -> Annotated[Json, SessionInfo]:
    """Start a session."""
    rooms, caller = context.rooms, context.caller
    policy = await rooms.sandbox.load()
    spec = SessionSpec(
        name=params.name,
        command=params.command,
        rows=params.rows,
        cols=params.cols,
        cwd=_resolve(caller.cwd or (_find_home() if caller.via else ""), params.cwd),
        env=params.env or {},
        tags=tuple(params.tags or ()),
        actor=caller.actor,
        keep=caller.is_owner and not caller.for_model,
        agent_defaults=(caller.for_model or not caller.is_owner) and rooms.settings.get_bool("session.agent_defaults"),
        sandbox=choose_profile(caller, params.sandbox, policy),
        sandbox_policy=policy,
    )
    return describe(rooms, await rooms.registry.open_session(spec))


def _find_home() -> str:
    """Where a login begins: for callers on another machine, which have no folder here."""
    home = os.path.expanduser("~")
    return home if os.path.isdir(home) else ""


def _resolve(base: str, cwd: str | None) -> str | None:
    """A folder as the caller means it: relative to theirs, where that is known."""
    if not base:
        return cwd
    return base if cwd is None else os.path.join(base, os.path.expanduser(cwd))


@operation(manner="reads", errors=_ONE, forwarding=_NAMED)
async def get_session(on: OnSession) -> Annotated[Json, SessionInfo]:
    """One session."""
    return await look_and_describe(on.rooms, on.session)


@operation(
    errors=(*_ONE, "session_name_conflict", "invalid_session_name", "invalid_tag"),
    forwarding=Forwarding(addresses=("name",), names=("name",)),
)
async def update_session(on: OnSession, params: SessionPatch) -> Annotated[Json, SessionInfo]:
    """Rename and tag it, all or nothing."""
    registry, session = on.rooms.registry, on.session
    add = tuple(check_tag(tag) for tag in params.add_tags or ())
    remove = tuple(check_tag(tag) for tag in params.remove_tags or ())
    if set(add) & set(remove):
        raise InvalidRequest("A tag cannot be added and removed at once.", hint="Name each tag once.")
    if params.name is not None and params.name != session.name:
        check_session_name(params.name)
        if registry.find_session(params.name) is not None:
            raise SessionNameTaken(params.name)
        registry.rename(session.name, params.name)
    if add or remove:
        session.set_tags(add, remove)
    return await look_and_describe(on.rooms, session)


@operation(errors=_ONE)
async def kill_session(on: OnSession) -> Killed:
    """Kill its whole tree and forget it. It stays where its own program cannot be killed."""
    report = await on.rooms.registry.destroy(on.session)
    return Killed(survivors=[pid for pid, _ in report.survivors])


@operation(errors=(*_ONE, "session_taken"))
async def detach_session(on: OnSession) -> Detached:
    """Send every client of it away."""
    if is_agent(on.caller):
        refuse_taken(on.session)  # a viewer that goes away hands back
    return Detached(detached=on.rooms.clients.detach(on.session))


@operation(errors=_ONE, forwarding=_NAMED)
async def resize(on: OnSession, params: Resize) -> Annotated[Json, SessionInfo]:
    """Give it another size."""
    on.stage.resize(params.rows, params.cols)
    return await look_and_describe(on.rooms, on.session)


@operation(who="owner", errors=_ONE)
async def take_over(on: OnSession) -> None:
    """A person takes the keyboard: agents' input is refused."""
    on.session.input.take_over(on.caller.name)


@operation(who="owner", errors=_ONE)
async def hand_back(on: OnSession) -> None:
    """Agents may type again."""
    on.session.input.hand_back()
