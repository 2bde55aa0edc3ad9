"""Routes about sessions: making, finding, changing, typing, reading, waiting, ending."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from wsh.http.idle import wait_for_any
from wsh.http.rooms import ApiCall, Rooms, actor_of
from wsh.http.route import Query, Route, dump_json
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait import WaitSpec
from wsh.terminal.key import encode_key
from wsh.wire.caller import Caller
from wsh.wire.error import InvalidFormat, InvalidRequest, SessionNameTaken
from wsh.wire.model import Format
from wsh.wire.name import check_session_name, check_tag
from wsh.wire.screen import IdleAnswer, Screen, Scrollback
from wsh.wire.session import Keys, Resize, SessionCreate, SessionInfo, SessionPatch

Count = Annotated[int, Field(ge=0, le=2**53)]
Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]


class TagQuery(Query):
    tag: Annotated[str, Field(description="Tags separated by commas; any of them will do.")] | None = None


class FormatQuery(Query):
    format: str = "styled"


class ScrollbackQuery(FormatQuery):
    offset: Annotated[Count, Field(description="Lines to leave out, counted from the newest.")] = 0
    limit: Count = 100
    since_line: Annotated[Count, Field(description="Begin at this absolute line instead.")] | None = None


class IdleQuery(FormatQuery):
    timeout_ms: Annotated[Milliseconds, Field(description="Quiet for this long.")] | None = None
    max_wait_ms: Annotated[Milliseconds, Field(description="Give up after this long (408).")] = 30_000
    last_generation: Annotated[Count, Field(description="First wait for output newer than this.")] | None = None
    fresh: Annotated[bool, Field(description="Wait for a whole silence even if it is quiet already.")] = False
    text: Annotated[str, Field(description="Or: this text is printed.", max_length=4096)] | None = None
    regex: Annotated[str, Field(description="Or: something that matches is printed.", max_length=4096)] | None = None
    command: Annotated[bool, Field(description="Or: a command of the shell ended.")] = False
    prompt: Annotated[bool, Field(description="Or: the shell is at its prompt.")] = False
    input_wanted: Annotated[bool, Field(description="Or: the program waits for input.")] = False
    exit: Annotated[bool, Field(description="Or: the program ended (which ends every wait).")] = False


class AnyIdleQuery(IdleQuery):
    tag: str | None = None
    last_session: Annotated[str, Field(description="The session that the last call gave.")] | None = None


def check_format(given: str) -> Format:
    if given == "styled":
        return "styled"
    if given == "plain":
        return "plain"
    raise InvalidFormat(given)


def split_tags(given: str | None) -> list[str] | None:
    if given is None:
        return None
    return [check_tag(tag.strip()) for tag in given.split(",") if tag.strip()] or None


def make_wait(query: Any, rooms: Rooms) -> WaitSpec:
    return WaitSpec(
        quiet_ms=query.timeout_ms,
        text=query.text,
        regex=query.regex,
        command=query.command,
        prompt=query.prompt,
        input_wanted=query.input_wanted,
        exit=query.exit,
        generation=query.last_generation,
        fresh=query.fresh,
        max_wait_ms=rooms.cap_wait(query.max_wait_ms),
    )


async def create_session(rooms: Rooms, wanted: SessionCreate, caller: Caller) -> Session:
    return await rooms.registry.open_session(
        SessionSpec(
            name=wanted.name,
            command=wanted.command,
            rows=wanted.rows,
            cols=wanted.cols,
            cwd=wanted.cwd,
            env=wanted.env or {},
            tags=tuple(wanted.tags or ()),
            actor=actor_of(caller),
            keep=caller.is_owner,
            agent_defaults=not caller.is_owner and rooms.settings.get_bool("session.agent_defaults"),
        )
    )


def patch_session(rooms: Rooms, session: Session, wanted: SessionPatch) -> Session:
    """Name and tags, all or nothing."""
    add = tuple(check_tag(tag) for tag in wanted.add_tags or ())
    remove = tuple(check_tag(tag) for tag in wanted.remove_tags or ())
    if set(add) & set(remove):
        raise InvalidRequest("A tag cannot be added and removed at once.", hint="Name each tag once.")
    if wanted.name is not None and wanted.name != session.name:
        check_session_name(wanted.name)
        if rooms.registry.find_session(wanted.name) is not None:
            raise SessionNameTaken(wanted.name)
        rooms.registry.rename(session.name, wanted.name)
    if add or remove:
        session.set_tags(add, remove)
    return session


async def list_sessions(call: ApiCall) -> list[dict[str, Any]]:
    return [call.rooms.describe(s) for s in call.rooms.registry.list_sessions(split_tags(call.query.tag))]


async def post_session(call: ApiCall) -> dict[str, Any]:
    return call.rooms.describe(await create_session(call.rooms, call.body, call.caller))


async def get_session(call: ApiCall) -> dict[str, Any]:
    return call.rooms.describe(call.rooms.session(call.session_name))


async def change_session(call: ApiCall) -> dict[str, Any]:
    session = call.rooms.session(call.session_name)
    return call.rooms.describe(patch_session(call.rooms, session, call.body))


async def delete_session(call: ApiCall) -> None:
    await call.rooms.registry.kill(call.session_name)


async def detach(call: ApiCall) -> None:
    call.rooms.clients.detach(call.rooms.session(call.session_name))


async def send_input(call: ApiCall) -> None:
    await call.rooms.session(call.session_name).send_input(call.body, actor_of(call.caller))


async def send_keys(call: ApiCall) -> None:
    session = call.rooms.session(call.session_name)
    data = b"".join(encode_key(key, session.terminal) for key in call.body.keys)
    await session.send_input(data, actor_of(call.caller))


async def resize(call: ApiCall) -> dict[str, Any]:
    session = call.rooms.session(call.session_name)
    call.rooms.stages.of(session).resize(call.body.rows, call.body.cols)
    return call.rooms.describe(session)


async def get_screen(call: ApiCall) -> bytes:
    session = call.rooms.session(call.session_name)
    return dump_json(call.rooms.screen(session, check_format(call.query.format)))


async def get_scrollback(call: ApiCall) -> bytes:
    query = call.query
    styled = check_format(query.format) == "styled"
    terminal = call.rooms.session(call.session_name).terminal
    page = terminal.scrollback(query.offset, query.limit, styled=styled, since_line=query.since_line)
    return dump_json(page.to_wire())


async def wait_idle(call: ApiCall) -> bytes:
    format = check_format(call.query.format)
    session = call.rooms.session(call.session_name)
    result = await session.wait(make_wait(call.query, call.rooms))
    return dump_json(call.rooms.idle_answer(session, result, format))


async def wait_any_idle(call: ApiCall) -> bytes:
    query, rooms = call.query, call.rooms
    format = check_format(query.format)
    session, result = await wait_for_any(
        rooms.registry, make_wait(query, rooms), tags=split_tags(query.tag), last_session=query.last_session
    )
    return dump_json({"session": session.name, **rooms.idle_answer(session, result, format)})


async def take_over(call: ApiCall) -> None:
    call.rooms.session(call.session_name).take_over(call.caller.name)


async def hand_back(call: ApiCall) -> None:
    call.rooms.session(call.session_name).hand_back()


GROUP = "sessions"
_ONE = ("session_not_found",)
_INPUT = (*_ONE, "session_exited", "session_taken", "idle_timeout", "resource_limit_reached")
_CREATE = (
    "invalid_session_name",
    "invalid_tag",
    "invalid_env",
    "program_not_found",
    "cwd_not_found",
    "session_name_conflict",
    "session_create_failed",
    "keeper_gone",
    "max_sessions_reached",
)
_WAIT = ("idle_timeout", "invalid_format", "invalid_pattern")

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/sessions",
        list_sessions,
        "All sessions, or those with a tag.",
        GROUP,
        query=TagQuery,
        answer=list[SessionInfo],
        errors=("invalid_tag",),
    ),
    Route(
        "POST",
        "/sessions",
        post_session,
        "Start a session.",
        GROUP,
        body=SessionCreate,
        answer=SessionInfo,
        status=201,
        errors=_CREATE,
    ),
    Route("GET", "/sessions/{name}", get_session, "One session.", GROUP, answer=SessionInfo, errors=_ONE),
    Route(
        "PATCH",
        "/sessions/{name}",
        change_session,
        "Rename and tag it, all or nothing.",
        GROUP,
        body=SessionPatch,
        answer=SessionInfo,
        errors=(*_ONE, "session_name_conflict", "invalid_session_name", "invalid_tag"),
    ),
    Route("DELETE", "/sessions/{name}", delete_session, "Kill its whole tree and forget it.", GROUP, errors=_ONE),
    Route("POST", "/sessions/{name}/detach", detach, "Send every client of it away.", GROUP, errors=_ONE),
    Route(
        "POST",
        "/sessions/{name}/input",
        send_input,
        "Type these bytes.",
        GROUP,
        body=bytes,
        errors=_INPUT,
    ),
    Route(
        "POST",
        "/sessions/{name}/keys",
        send_keys,
        "Press these keys.",
        GROUP,
        body=Keys,
        errors=(*_INPUT, "invalid_key"),
    ),
    Route(
        "POST",
        "/sessions/{name}/resize",
        resize,
        "Give it another size.",
        GROUP,
        body=Resize,
        answer=SessionInfo,
        errors=_ONE,
    ),
    Route(
        "GET",
        "/sessions/{name}/screen",
        get_screen,
        "What is on its screen now.",
        GROUP,
        query=FormatQuery,
        answer=Screen,
        errors=(*_ONE, "invalid_format"),
    ),
    Route(
        "GET",
        "/sessions/{name}/scrollback",
        get_scrollback,
        "Its last lines, or those since one.",
        GROUP,
        query=ScrollbackQuery,
        answer=Scrollback,
        errors=(*_ONE, "invalid_format"),
    ),
    *(
        Route(
            "GET",
            f"/sessions/{{name}}/{word}",
            wait_idle,
            "Wait until it is quiet, or for something else.",
            GROUP,
            query=IdleQuery,
            answer=IdleAnswer,
            errors=(*_ONE, *_WAIT),
            waits=True,
        )
        for word in ("idle", "quiesce")
    ),
    Route(
        "GET",
        "/idle",
        wait_any_idle,
        "Wait until any session is quiet, each in its turn.",
        GROUP,
        query=AnyIdleQuery,
        answer=IdleAnswer,
        errors=(*_WAIT, "no_sessions", "invalid_tag"),
        waits=True,
    ),
    Route(
        "POST",
        "/sessions/{name}/take_over",
        take_over,
        "A person takes the keyboard: agents' input is refused.",
        GROUP,
        owner_only=True,
        errors=_ONE,
    ),
    Route(
        "POST",
        "/sessions/{name}/hand_back",
        hand_back,
        "Agents may type again.",
        GROUP,
        owner_only=True,
        errors=_ONE,
    ),
)
