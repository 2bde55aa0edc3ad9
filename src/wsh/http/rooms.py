"""What the handlers of routes and methods may ask, and how sessions look on this wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from wsh.http.clients import Clients
from wsh.http.route import Call
from wsh.session.event import Actor
from wsh.session.session import Session
from wsh.session.wait import WaitResult
from wsh.visual.stage import Stage
from wsh.visual.stages import Stages
from wsh.wire.caller import Caller
from wsh.wire.error import SessionNotFound
from wsh.wire.model import Format
from wsh.wire.place import Places
from wsh.wire.setting import Settings

if TYPE_CHECKING:
    from wsh.contract.dispatch import Contract
    from wsh.http.feed import Feeds
    from wsh.http.late import Late
    from wsh.http.server_route import ServerFacts
    from wsh.session.registry import SessionRegistry
    from wsh.workspace.service import WorkspaceService


@dataclass
class Rooms:
    settings: Settings
    places: Places
    server: ServerFacts
    clients: Clients
    stages: Stages
    registry: SessionRegistry
    contract: Late[Contract]
    workspace: Late[WorkspaceService]
    list_guests: Callable[[], list[dict[str, Any]]] = list
    """Clients that other doors know of."""
    _feeds: Feeds | None = None

    @property
    def feeds(self) -> Feeds:
        if self._feeds is None:
            from wsh.http.feed import Feeds

            self._feeds = Feeds(self)
        return self._feeds

    def session(self, name: str) -> Session:
        return self.registry.get_session(name)

    def stage(self, name: str) -> Stage:
        return self.stages.of(self.registry.get_session(name))

    def describe(self, session: Session) -> dict[str, Any]:
        """SessionInfo. Its size is that of the whole picture, panels included."""
        stage = self.stages.find(session)
        return {
            "name": session.name,
            "server": self.server.hostname,
            "pid": session.pid or None,
            "command": session.command,
            "rows": stage.rows if stage else session.rows,
            "cols": stage.cols if stage else session.cols,
            "clients": self.clients.count(session),
            "tags": list(session.tags),
            "last_activity_ms": session.last_activity_ms,
            "running": session.running,
            "exit_code": session.exit_code,
            "title": session.title,
            "cwd": session.cwd,
        }

    def screen(self, session: Session, format: Format) -> dict[str, Any]:
        shown = session.terminal.screen(format == "styled").to_wire()
        stage = self.stages.find(session)
        if stage is not None:
            shown["mode"] = stage.mode
        return shown

    def idle_answer(self, session: Session, result: WaitResult, format: Format) -> dict[str, Any]:
        if self.registry.find_session(session.name) is not session:
            raise SessionNotFound(session.name)
        answer: dict[str, Any] = {
            "screen": self.screen(session, format),
            "scrollback_lines": session.terminal.total_lines - session.terminal.first_line,
            "generation": result.generation,
            "last_activity_ms": session.last_activity_ms,
            "ended_by": result.ended_by,
        }
        if result.matched is not None:
            answer["matched"] = result.matched
        if result.command_id is not None:
            answer["command_id"] = result.command_id
        return answer

    def cap_wait(self, max_wait_ms: int) -> int:
        return min(max_wait_ms, self.settings.get_int("server.max_wait_ms"))


ApiCall: TypeAlias = Call[Rooms]


def actor_of(caller: Caller) -> Actor:
    """The owner is a person, also when a script types for them."""
    return Actor("person" if caller.is_owner else "agent", caller.name)
