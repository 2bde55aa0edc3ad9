"""How long the server lives: until it is told to stop, or, when ephemeral, until nobody needs it.

An ephemeral server stays while a client is connected or a session runs that a person opened or asked to keep;
sessions that only agents made hold it for a while after the last client left; with none it goes soon. A session whose
program has ended holds nobody: it is on disk, and the next server shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from wsh.http.server.serve import Presence

Holding = Literal["kept", "agents", "none"]

IDLE_S = 2.0
"""How long an ephemeral server without sessions waits for the next client."""


class Lifetime:
    """Decides when to stop; `stopping` is set once and for all, `keep_sessions` says what becomes of the sessions."""

    def __init__(
        self, presence: Presence, *, persistent: bool, linger_s: float, sessions: Callable[[], Holding] = lambda: "kept"
    ) -> None:
        """Until the rooms are open the sessions are not known, so the server stays."""
        self.persistent = persistent
        self.stopping = asyncio.Event()
        self.keep_sessions = True
        self.forsaken = False
        """Nobody needs us any more: what runs is ended, what has ended stays readable."""
        self.sessions = sessions
        self.told: Callable[[bool], None] = lambda persistent: None
        """Called when somebody makes the server persistent, or not."""
        self._presence = presence
        self._linger_s = linger_s
        self._loop = asyncio.get_running_loop()
        self._alone_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        presence.changed = self.look

    def set_persistent(self, persistent: bool) -> None:
        self.persistent = persistent
        self.told(persistent)
        self.look()

    def stop(self, *, keep_sessions: bool) -> None:
        if not self.stopping.is_set():
            self.keep_sessions = keep_sessions
            self.stopping.set()

    def look(self) -> None:
        """Something changed (a client, a session): is the server still needed, and when to look again?"""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._presence.count > 0:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = self._loop.time()
        if self.persistent or self._alone_since is None or self.stopping.is_set():
            return
        holding = self.sessions()
        if holding == "kept":
            return
        wait_s = self._linger_s if holding == "agents" else min(IDLE_S, self._linger_s)
        left = self._alone_since + wait_s - self._loop.time()
        if left <= 0:
            self.forsaken = True
            self.stop(keep_sessions=False)
        else:
            self._timer = self._loop.call_later(left + 0.001, self.look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
