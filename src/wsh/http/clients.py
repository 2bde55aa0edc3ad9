"""Connections that watch a session: how many, at most how many, and the word that sends them away."""

from __future__ import annotations

from collections.abc import Callable

from wsh.session.session import Session
from wsh.wire.error import LimitReached

Dismiss = Callable[[], None]


class Clients:
    def __init__(self, most: int) -> None:
        self._most = most
        self._by_session: dict[str, list[Dismiss]] = {}

    def enter(self, session: Session, dismiss: Dismiss) -> Callable[[], None]:
        """Count a connection; `dismiss` is called to send it away. The returned function ends the count."""
        present = self._by_session.setdefault(session.sid, [])
        if len(present) >= self._most:
            raise LimitReached("clients of this session", self._most, "server.max_viewers")
        present.append(dismiss)

        def leave() -> None:
            if dismiss in present:
                present.remove(dismiss)
            if not present and self._by_session.get(session.sid) is present:
                del self._by_session[session.sid]

        return leave

    def count(self, session: Session) -> int:
        return len(self._by_session.get(session.sid, ()))

    def detach(self, session: Session) -> int:
        """Send every connection of a session away; how many there were."""
        present = list(self._by_session.get(session.sid, ()))
        for dismiss in present:
            dismiss()
        return len(present)
