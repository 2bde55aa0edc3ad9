"""Connections that watch a session: who, at most how many, and the word that sends them away."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.session.session import Session
from wsh.wire.caller import Caller
from wsh.wire.error import LimitReached

Dismiss = Callable[[], None]
Manner: TypeAlias = Literal["view", "raw", "json"]


@dataclass(frozen=True, eq=False)
class Present:
    """One connection: `dismiss` sends it away, `manner` is the WebSocket it came by."""

    caller: Caller
    manner: Manner
    dismiss: Dismiss
    since: float

    @property
    def kind(self) -> str:
        """What it most likely is: only the page has a sign-in, and viewers on the unix socket are terminals and windows."""
        if self.caller.proof == "cookie":
            return "page"
        return "attach" if self.manner == "view" and self.caller.proof == "unix" else self.manner

    @property
    def whose(self) -> object:
        """Equal for all connections of one browser, else of this connection alone."""
        return self.caller.account if self.kind == "page" and self.caller.account else id(self)

    def to_wire(self, session: str | None) -> dict[str, object]:
        return {
            "session": session,
            "role": self.caller.role,
            "name": self.caller.name,
            "manner": self.manner,
            "kind": self.kind,
            "client": None,
            "since": self.since,
        }


class Clients:
    def __init__(self, most: int, most_of_one: int = 1024) -> None:
        """At most `most` connections to a session, and `most_of_one` of one caller to all of them."""
        self._most = most
        self._most_of_one = most_of_one
        self._by_session: dict[str, list[Present]] = {}

    def enter(self, session: Session | None, caller: Caller, manner: Manner, dismiss: Dismiss) -> Callable[[], None]:
        """Count a connection to a session, or to the server as a whole; `dismiss` is called to send it away.

        The returned function ends the count.
        """
        key = session.sid if session is not None else ""
        present = self._by_session.setdefault(key, [])
        if len(present) >= self._most:
            raise LimitReached("clients of this session" if key else "clients", self._most, "server.max_viewers")
        same = sum(p.caller.counted_as == caller.counted_as for each in self._by_session.values() for p in each)
        if same >= self._most_of_one:
            raise LimitReached("WebSockets of one caller", self._most_of_one, "server.max_sockets")
        one = Present(caller, manner, dismiss, time.time())
        present.append(one)

        def leave() -> None:
            if one in present:
                present.remove(one)
            if not present and self._by_session.get(key) is present:
                del self._by_session[key]

        return leave

    def count(self, session: Session) -> int:
        """Clients of a session. A browser is one, however many connections its page has."""
        return len({one.whose for one in self._by_session.get(session.sid, ())})

    def list_present(self, session: Session | None) -> list[Present]:
        """Connections to a session, or those to the server as a whole."""
        return list(self._by_session.get(session.sid if session is not None else "", ()))

    def detach(self, session: Session) -> int:
        """Send every connection of a session away. Returns how many there were."""
        present = self.list_present(session)
        for one in present:
            one.dismiss()
        return len(present)
