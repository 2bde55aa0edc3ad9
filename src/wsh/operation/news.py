"""What is told of sessions as it happens: made, renamed, tagged, ended. The shape of the events of `/ws/json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wsh.operation.session import describe
from wsh.session.event import SessionEvent, TagsChanged
from wsh.session.registry import LifecycleEvent, SessionCreated, SessionDestroyed, SessionRenamed

if TYPE_CHECKING:
    from wsh.operation.context import Rooms
    from wsh.session.session import Session
    from wsh.wire.json.object import JsonObject

NOTICE_TOLD = "notice_told"
"""News from server to server: what the host has in its outbox is another than before."""
_CREATED = ("name", "pid", "command", "rows", "cols", "clients", "tags", "server")


def follow_sessions(rooms: Rooms, tell: Callable[[JsonObject], None]) -> Callable[[], None]:
    """Call `tell` with each event until the returned function is called."""
    registry = rooms.registry
    followed: dict[str, Callable[[], None]] = {}

    def follow(session: Session) -> None:
        def on_event(event: SessionEvent) -> None:
            if isinstance(event, TagsChanged):
                body = {"tags": list(event.tags), "added": list(event.added), "removed": list(event.removed)}
                params = {"name": session.name, "tags": list(event.tags)}
                tell(_make("session_tags_changed", session.name, params, **body))

        followed[session.sid] = session.listeners.add(on_event)

    def on_lifecycle(event: LifecycleEvent) -> None:
        if isinstance(event, SessionCreated):
            follow(event.session)
            info = describe(rooms, event.session)
            params = {key: info[key] for key in _CREATED}
            tell(_make("session_created", event.session.name, params, info=info))
        elif isinstance(event, SessionRenamed):
            names = {"old_name": event.old, "new_name": event.session.name}
            tell(_make("session_renamed", event.session.name, names, **names))
        elif isinstance(event, SessionDestroyed):
            followed.pop(event.sid, lambda: None)()
            tell(_make("session_destroyed", event.name, {"name": event.name}, exit_code=event.exit_code))

    for session in registry.list_sessions():
        follow(session)
    end = registry.lifecycle.add(on_lifecycle)

    def stop() -> None:
        end()
        for forget in followed.values():
            forget()

    return stop


def _make(event: str, name: str, params: JsonObject, **facts: object) -> JsonObject:
    """Flat, and once more as `params`, where pages and recipes of the public API look for it."""
    return {"event": event, "session": name, "name": name, **facts, "params": params}


_NAMES = ("session", "name", "old_name", "new_name")


def adopt_news(host: str, news: JsonObject) -> JsonObject:
    """What a host told, as it is told here: sessions by their addresses."""
    adopted = {
        key: f"{host}/{value}" if key in _NAMES and isinstance(value, str) else value for key, value in news.items()
    }
    for inner in ("params", "info"):
        known = adopted.get(inner)
        if isinstance(known, dict):
            adopted[inner] = adopt_news(host, known)
    return adopted | {"host": host}
