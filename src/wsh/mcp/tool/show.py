"""How sessions look on this wire: less than on others, and with what an agent needs next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from wsh.operation.context import Rooms
from wsh.operation.session import describe, show_holding
from wsh.session.event import Output, SessionEvent
from wsh.session.session import Session
from wsh.wire.error import SessionExited
from wsh.wire.json.object import JsonObject
from wsh.wire.tool import CallContext

PROGRESS_S = 0.25
_LISTED = ("name", "pid", "command", "rows", "cols", "running", "tags", "clients", "title", "cwd")


def show_session(rooms: Rooms, session: Session) -> JsonObject:
    """A session in a list."""
    told = describe(rooms, session)
    shown: JsonObject = {name: told[name] for name in _LISTED} | {"pid": session.pid}
    if not session.running:
        shown["exit_code"] = session.exit_code
    if session.input.taken_by is not None:
        shown["taken_by"] = session.input.taken_by
    if session.notice is not None:
        shown["notice"] = session.notice
    if session.holding is not None:
        shown["sandbox"] = show_holding(session.holding)
    return shown


def show_listed(rooms: Rooms, info: JsonObject) -> JsonObject | None:
    """A session in a list of several machines; None for one that ended while the list was made."""
    if info.get("host") is None:
        session = rooms.registry.find_session(info["name"])
        return None if session is None else show_session(rooms, session)
    shown: JsonObject = {name: info[name] for name in (*_LISTED, "host")}
    if not info["running"]:
        shown["exit_code"] = info["exit_code"]
    for name in ("notice", "sandbox", "unreachable_since"):
        if info.get(name) is not None:
            shown[name] = info[name]
    return shown


def show_state(session: Session) -> JsonObject:
    """What an agent needs next, beside a screen."""
    state: JsonObject = {
        "generation": session.generation,
        "running": session.running,
        "title": session.title,
        "cwd": session.cwd,
    }
    if not session.running:
        state["exit_code"] = session.exit_code
    return state


def report_exit(session: Session, told: JsonObject) -> SessionExited:
    """The session ended during a call that had not asked for that; everything the call found out goes along."""
    problem = SessionExited(session.name, session.exit_code)
    problem.facts |= {"running": False} | {key: value for key, value in told.items() if key != "exit_code"}
    return problem


@contextmanager
def reported_output(ctx: CallContext, session: Session, phase: str) -> Iterator[None]:
    """While a call waits, its caller hears the newest line now and then."""
    due = 0.0

    def hear(event: SessionEvent) -> None:
        nonlocal due
        if isinstance(event, Output) and time.monotonic() >= due:
            due = time.monotonic() + PROGRESS_S
            ctx.progress(_newest_line(session), stream="stdout", phase=phase)

    stop = session.listeners.add(hear)
    try:
        yield
    finally:
        stop()


def _newest_line(session: Session) -> str:
    page = session.terminal.scrollback(0, 3, styled=False)
    lines = [str(line).strip() for line in page.lines]
    return next((line for line in reversed(lines) if line), "")[:200]
