"""The list of terminals: the window's own and the server's, each with its state as the kernel knows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from wsh.client.model import SessionReply
from wsh.desktop.message import SessionRow, WindowNotice
from wsh.desktop.remote import PREFIX, RemoteSessions, read_mood
from wsh.session import event as ev
from wsh.session.event import SessionEvent
from wsh.session.registry import SessionCreated, SessionRegistry
from wsh.session.session import Session
from wsh.wire.error import WshError

_PAUSE_S = 0.3


class Roster:
    """Tells the whole list after each change that shows. `on_output` hears which of our sessions printed."""

    def __init__(
        self,
        registry: SessionRegistry,
        remote: RemoteSessions,
        tell: Callable[[object], None],
        begin: Callable[[Callable[[], Awaitable[object] | None]], None],
        on_output: Callable[[str], None],
        count_pending: Callable[[], Mapping[str, int]],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._registry = registry
        self._remote = remote
        self._tell = tell
        self._begin = begin
        self._on_output = on_output
        self._count_pending = count_pending
        self._moods: dict[str, str] = {}
        self._printed: dict[str, Session] = {}
        self._timer: asyncio.Handle | None = None
        self.told = False
        self._unfollow = registry.lifecycle.add(self._on_lifecycle)
        for session in registry.list_sessions():
            self._follow(session)

    def close(self) -> None:
        self._unfollow()
        if self._timer is not None:
            self._timer.cancel()

    def find(self, sid: str | None) -> Session | None:
        return next((s for s in self._registry.list_sessions() if s.sid == sid), None) if sid else None

    def _on_lifecycle(self, event: object) -> None:
        if isinstance(event, SessionCreated):
            self._follow(event.session)
        self.tell()

    def _follow(self, session: Session) -> None:
        def hear(event: SessionEvent) -> None:
            if isinstance(event, ev.Output):
                self._on_output(session.sid)
                self._printed[session.sid] = session
                if self._timer is None:
                    self._timer = self._loop.call_later(_PAUSE_S, self._look_soon)
            elif isinstance(event, ev.Exited | ev.TitleChanged | ev.Renamed):
                self.tell()
                self._on_output(session.sid)
            elif isinstance(event, ev.Bell):
                self._tell(("bell", session.sid))
            elif isinstance(event, ev.RunWaitChanged) and event.actor is not None:
                what = event.command.splitlines()[0][:80] if event.command else ""
                self._tell(
                    WindowNotice(f"{event.actor.id} wants to run `{what}` in {session.name}; it waits for your line.")
                )

        session.listeners.add(hear)
        self._printed[session.sid] = session
        if self._timer is None:
            self._timer = self._loop.call_later(_PAUSE_S, self._look_soon)

    def tell(self) -> None:
        self.told = True
        rows = []
        waiting = self._count_pending()
        for session in sorted(self._registry.list_sessions(), key=lambda session: session.cwd):
            state = self._moods.get(session.sid, "running")
            if not session.running:
                state = "exited" if session.exit_code == 0 else "failed"
            command = session.title or session.command
            pending = waiting.get(session.name, 0)
            rows.append(SessionRow(session.sid, session.name, command, session.cwd, state, session.exit_code, pending))
        for info in sorted(self._remote.sessions, key=lambda info: (info.host or "", info.cwd)):
            state = self._remote.moods.get(info.name, "running")
            if not info.running:
                state = "exited" if info.exit_code == 0 else "failed"
            command, place = (
                info.title or info.command,
                name_place(info) + (f" · sandbox {info.sandbox['profile']}" if info.sandbox else ""),
            )
            rows.append(SessionRow(PREFIX + info.name, info.name, command, place, state, info.exit_code, remote=True))
        self._tell(("sessions", tuple(rows)))

    # what they wait for

    def _look_soon(self) -> None:
        self._timer = None
        self._begin(self._look)

    async def _look(self) -> None:
        """Ask the kernel about those that printed and then paused; one that goes on printing does not wait."""
        printed, self._printed = self._printed, {}
        changed = False
        for sid, session in printed.items():
            if not session.running:
                continue
            if session.last_activity_ms < _PAUSE_S * 1000 / 2:
                mood = "running"
                self._printed[sid] = session
            else:
                try:
                    state = await session.look(jobs=False)
                except WshError:
                    continue
                mood = read_mood(state.state)
            if self._moods.get(sid, "running") != mood:
                self._moods[sid] = mood
                changed = True
        if self._printed and self._timer is None:
            self._timer = self._loop.call_later(_PAUSE_S, self._look_soon)
        if changed:
            self.tell()


def name_place(info: SessionReply) -> str:
    """What stands above a session of the server: the machine that it is on, and its folder there."""
    if info.unreachable_since is not None:
        return f"{info.host}: out of reach"
    return f"{info.host or 'server'}: {info.cwd}"
