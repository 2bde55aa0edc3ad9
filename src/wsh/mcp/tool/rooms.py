"""What the terminal tools may ask of the rooms, and how sessions look on this wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from wsh.session.event import Actor, Output, SessionEvent
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.visual.stage import Stage
from wsh.wire.error import SessionExited
from wsh.wire.setting import Settings
from wsh.wire.tool import CallContext

PROGRESS_S = 0.25


class StageBook(Protocol):
    """The stages of all sessions."""

    def of(self, session: Session) -> Stage: ...

    def find(self, session: Session) -> Stage | None: ...


@dataclass
class TerminalRooms:
    registry: SessionRegistry
    stages: StageBook
    settings: Settings
    detach: Callable[[Session], int]
    """Send every viewer of a session away; how many there were."""
    count_clients: Callable[[Session], int]
    read_marks: dict[tuple[str, str], int] = field(default_factory=dict)
    """Up to where each owner has read the captured keys of each session."""
    input_marks: dict[tuple[str, str], int] = field(default_factory=dict)
    """The generation before each owner's last input to each session: what they wait for comes after it."""

    def get_session(self, arguments: dict[str, Any]) -> Session:
        return self.registry.get_session(arguments["session"])

    def cap_wait(self, max_wait_ms: int) -> int:
        return min(max_wait_ms, self.settings.get_int("server.max_wait_ms"))

    def describe(self, session: Session) -> dict[str, Any]:
        """A session in a list; the size is that of the whole picture, panels included."""
        stage = self.stages.find(session)
        shown: dict[str, Any] = {
            "name": session.name,
            "pid": session.pid,
            "command": session.command,
            "rows": stage.rows if stage else session.rows,
            "cols": stage.cols if stage else session.cols,
            "running": session.running,
            "tags": list(session.tags),
            "clients": self.count_clients(session),
            "title": session.title,
            "cwd": session.cwd,
        }
        if not session.running:
            shown["exit_code"] = session.exit_code
        if session.taken_by is not None:
            shown["taken_by"] = session.taken_by
        return shown

    def read_screen(self, session: Session, format: str) -> dict[str, Any]:
        shown = session.terminal.screen(format == "styled").to_wire()
        stage = self.stages.find(session)
        if stage is not None:
            shown["mode"] = stage.mode
        return shown

    def read_state(self, session: Session) -> dict[str, Any]:
        """What an agent needs next, beside a screen."""
        state: dict[str, Any] = {
            "generation": session.generation,
            "running": session.running,
            "title": session.title,
            "cwd": session.cwd,
        }
        if not session.running:
            state["exit_code"] = session.exit_code
        return state

    def describe_screen(self, session: Session, format: str) -> dict[str, Any]:
        return self.read_screen(session, format) | self.read_state(session)

    def read_scrollback(
        self, session: Session, *, offset: int, limit: int, since_line: int | None, format: str
    ) -> dict[str, Any]:
        terminal = session.terminal
        page = terminal.scrollback(offset, limit, styled=format == "styled", since_line=since_line)
        return page.to_wire()

    def forget_owner(self, owner: str) -> None:
        """Its connection ended."""
        for marks in (self.read_marks, self.input_marks):
            for key in [key for key in marks if key[0] == owner]:
                del marks[key]

    def forget_session(self, sid: str) -> None:
        """It is gone."""
        for marks in (self.read_marks, self.input_marks):
            for key in [key for key in marks if key[1] == sid]:
                del marks[key]


def find_actor(ctx: CallContext) -> Actor:
    """Whoever holds the owner's token acts as the person; everybody else is an agent."""
    name = ctx.client or ctx.caller
    return Actor("person" if ctx.actor == "owner" else "agent", name[:64])


def report_exit(session: Session, told: dict[str, Any]) -> SessionExited:
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
