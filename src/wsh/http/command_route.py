"""Routes about commands: run one, look at those that ran, and at what the session waits for."""

from __future__ import annotations

import time
from typing import Annotated, Any

from pydantic import Field

from wsh.http.rooms import ApiCall, Rooms, actor_of
from wsh.http.route import Route, dump_json
from wsh.http.session_route import Count, FormatQuery, check_format
from wsh.session.command import Command
from wsh.session.session import Session
from wsh.wire.caller import Caller
from wsh.wire.command import CommandInfo, CommandOutput, RunAnswer, RunRequest, StateAnswer
from wsh.wire.error import CommandNotFound


class OutputQuery(FormatQuery):
    format: str = "plain"
    offset: Annotated[Count, Field(description="The first line, or match, to give.")] = 0
    limit: Count = 1000
    search: Annotated[str, Field(description="Only lines with this text.", max_length=4096)] | None = None
    regex: Annotated[str, Field(description="Only lines that match.", max_length=4096)] | None = None


async def run_in(rooms: Rooms, session: Session, wanted: RunRequest, caller: Caller) -> dict[str, Any]:
    default = rooms.settings.get_int("session.max_output_bytes")
    outcome = await session.run_command(
        wanted.input,
        actor_of(caller),
        enter=wanted.enter,
        timeout_ms=wanted.timeout_ms,
        max_wait_ms=rooms.cap_wait(wanted.max_wait_ms),
        max_output_bytes=default if wanted.max_output_bytes is None else wanted.max_output_bytes,
    )
    return {"screen": rooms.screen(session, wanted.format), **outcome.to_wire(session.name)}


async def read_output(session: Session, command: Command, wanted: Any) -> dict[str, Any]:
    """A page of output; `wanted` has the fields of OutputQuery."""
    page = await session.read_output_page(
        command,
        offset=wanted.offset,
        limit=wanted.limit,
        styled=check_format(wanted.format) == "styled",
        search=wanted.search,
        regex=wanted.regex,
    )
    shown: dict[str, Any] = {"lines": page.lines, "offset": page.offset, "total": page.total}
    if page.numbers is not None:
        shown |= {"numbers": page.numbers, "matches": page.matches}
    return shown | {"missing_bytes": page.missing_bytes}


async def look_at(session: Session) -> dict[str, Any]:
    state = (await session.look()).to_wire()
    last = session.last_input
    return state | {
        "taken_by": session.taken_by,
        "last_input": None
        if last is None
        else {"by": last[0].kind, "name": last[0].id, "ago_ms": int((time.monotonic() - last[1]) * 1000)},
    }


async def run(call: ApiCall) -> bytes:
    session = call.rooms.session(call.session_name)
    return dump_json(await run_in(call.rooms, session, call.body, call.caller))


def _find_command(call: ApiCall, session: Session) -> Command:
    given = call.path["id"]
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise CommandNotFound(given[:80])
    return session.get_command(int(given))


async def list_commands(call: ApiCall) -> list[dict[str, Any]]:
    return [command.to_wire() for command in call.rooms.session(call.session_name).list_commands()]


async def get_command(call: ApiCall) -> dict[str, Any]:
    return _find_command(call, call.rooms.session(call.session_name)).to_wire()


async def get_output(call: ApiCall) -> bytes:
    session = call.rooms.session(call.session_name)
    return dump_json(await read_output(session, _find_command(call, session), call.query))


async def get_state(call: ApiCall) -> dict[str, Any]:
    return await look_at(call.rooms.session(call.session_name))


GROUP = "commands"
_ONE = ("session_not_found",)

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/sessions/{name}/run",
        run,
        "Run a command and wait for its end.",
        GROUP,
        body=RunRequest,
        answer=RunAnswer,
        errors=(*_ONE, "session_exited", "session_taken", "idle_timeout", "resource_limit_reached"),
        waits=True,
    ),
    Route(
        "GET",
        "/sessions/{name}/commands",
        list_commands,
        "What ran here.",
        GROUP,
        answer=list[CommandInfo],
        errors=_ONE,
    ),
    Route(
        "GET",
        "/sessions/{name}/commands/{id}",
        get_command,
        "One command.",
        GROUP,
        answer=CommandInfo,
        errors=(*_ONE, "command_not_found"),
    ),
    Route(
        "GET",
        "/sessions/{name}/commands/{id}/output",
        get_output,
        "What it printed, by line or by search.",
        GROUP,
        query=OutputQuery,
        answer=CommandOutput,
        errors=(*_ONE, "command_not_found", "invalid_format", "invalid_pattern"),
        waits=True,
    ),
    Route(
        "GET",
        "/sessions/{name}/state",
        get_state,
        "What it runs and what it waits for.",
        GROUP,
        answer=StateAnswer,
        errors=(*_ONE, "keeper_gone"),
    ),
)
