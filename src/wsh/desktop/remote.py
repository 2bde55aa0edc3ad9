"""The sessions of this user's running server, beside the window's own: a list that keeps itself, and one of them on the screen.

Stands on the client library and the server's WebSockets alone. Never starts a server, and does not hold an ephemeral one on which nothing
runs: while there is none, the list is empty.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlencode

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import WebSocketException

from wsh.client.client import Server, connect
from wsh.client.model import SessionReply
from wsh.desktop.message import InboxRow
from wsh.session.recovery.trial import attempt
from wsh.terminal import Terminal
from wsh.wire.error import WshError
from wsh.wire.json.object import JsonObject
from wsh.wire.system.place import Places
from wsh.wire.system.task_set import TaskSet

PREFIX = "server:"
_AGAIN_S = 2.0
_REFRESH_S = 3.0
_AFAR_S = 10.0
_SELDOM_S = 30.0
"""Longer than an ephemeral server without sessions waits for somebody."""
_SCROLLBACK = 2000
_ENGINE_S = 10.0
_DEADLY = b"\x1bcThe terminal engine of this window dies of what this session shows.\r\nThe page shows it, and so does: wsh attach"
_LAST_PICTURE = "{} is away; this is the last picture"
_LOST = (OSError, WebSocketException, WshError, TimeoutError)


class RemoteSessions:
    """What runs on the server. `run` until cancelled; `on_change` after each change of `sessions`."""

    def __init__(
        self, places: Places, on_change: Callable[[], None], on_inbox: Callable[[tuple[InboxRow, ...]], None]
    ) -> None:
        self._places = places
        self._socket = places.socket
        self._on_change = on_change
        self._on_inbox = on_inbox
        self.inbox: tuple[InboxRow, ...] = ()
        self.sessions: list[SessionReply] = []
        self.moods: dict[str, str] = {}
        """What each waits for, by its name: waiting, hidden or running."""
        self._active: dict[str, tuple[int, float, float]] = {}
        """When each last printed, when it is due to be asked again, and how long to wait after that."""

    async def run(self) -> None:
        while True:
            pause = _AGAIN_S
            if self._socket.exists():
                try:
                    await self._follow()
                    pause = _AFAR_S
                except _LOST:
                    self.moods.clear()
                    self._active.clear()
                    self._set([], False)
                    self._set_inbox(())
            await asyncio.sleep(pause)

    def _is_ephemeral(self) -> bool:
        try:
            return bool(json.loads(self._places.runtime_info.read_bytes()).get("ephemeral"))
        except (OSError, ValueError):
            return False

    async def _follow(self) -> None:
        """Hear of sessions that come and go, and look now and then for what else changes; ends when nobody should stay."""
        async with (
            connect(socket=self._socket, start=False) as server,
            unix_connect(str(self._socket), "ws://localhost/ws/json", max_size=None, compression=None) as events,
        ):
            while True:
                found = await server.list()
                changed = await self._look(server, found)
                self._set(found, changed)
                self._set_inbox(read_inbox(await server.call("GET", "/inbox")))
                if self._is_ephemeral() and not any(info.running for info in self.sessions):
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_REFRESH_S):
                        await events.recv()
                    while True:  # one look serves all that has been told by now
                        async with asyncio.timeout(0):
                            await events.recv()

    async def _look(self, server: Server, sessions: list[SessionReply]) -> bool:
        """Ask what the sessions wait for, silent ones less and less often. True if a state changed."""
        moods: dict[str, str] = {}
        for info in sessions:
            if not info.running or info.unreachable_since is not None:
                continue
            # A program may begin to wait long after its last word, so a silent one is asked too, but ever less often.
            now = time.monotonic()
            printed_at = round(now - info.last_activity_ms / 1000)
            before, due, step = self._active.get(info.name, (-9, 0.0, _REFRESH_S))
            silent = abs(before - printed_at) <= 1
            if self.moods.get(info.name) == "running" and silent and now < due:
                moods[info.name] = "running"
                continue
            step = min(step * 2, _SELDOM_S) if silent else _REFRESH_S
            self._active[info.name] = (printed_at, now + step, step)
            try:
                state = await server.call("GET", f"/sessions/{quote(info.name, safe='')}/state")
            except WshError:
                continue
            moods[info.name] = read_mood(str(state.get("state")))
        changed, self.moods = moods != self.moods, moods
        return changed

    def _set(self, sessions: list[SessionReply], changed: bool) -> None:
        # Activity changes all the time and is not shown.
        if changed or [_shown(info) for info in sessions] != [_shown(info) for info in self.sessions]:
            self.sessions = sessions
            self._on_change()

    def _set_inbox(self, rows: tuple[InboxRow, ...]) -> None:
        if rows != self.inbox:
            self.inbox = rows
            self._on_inbox(rows)

    async def mark(self, id: str, action: str) -> None:
        """Mark an entry of the inbox as done, or snooze it for an hour."""
        async with connect(socket=self._socket, start=False) as server:
            path = f"/inbox/{quote(id, safe='')}"
            self._set_inbox(read_inbox(await server.call("POST", path, json_body={"action": action})))

    async def kill(self, name: str) -> None:
        async with connect(socket=self._socket, start=False) as server:
            await server.session(name).kill()


def read_inbox(found: JsonObject) -> tuple[InboxRow, ...]:
    return tuple(
        InboxRow(
            one["id"],
            f"failed {one['exit_code']}" if one["kind"] == "failed" else one["kind"],
            one["session"] or "",
            one["line"] or one["what"],
            _describe_age(one["age_ms"] // 1000),
            one["wants"],
        )
        for one in found["items"]
    )


def _describe_age(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"


def read_mood(state: str) -> str:
    """How the list shows that state. A shell at its prompt and an open editor are at rest: nobody is waited for."""
    return {"hidden": "hidden", "asks": "waiting"}.get(state, "running")


def _shown(info: SessionReply) -> tuple[object, ...]:
    away = info.unreachable_since is not None
    return info.name, info.command, info.title, info.cwd, info.running, info.exit_code, info.sandbox, away


class RemoteView:
    """One session of the server, painted into a terminal of ours as its viewers see it: overlays and panels included."""

    def __init__(self, socket: Path, name: str, rows: int, cols: int, on_change: Callable[[], None]) -> None:
        self._path = socket
        self._on_change = on_change
        self._connection: ClientConnection | None = None
        self.name = name
        self.sid = PREFIX + name
        self.terminal = Terminal(rows, cols)
        self.running = True
        self.captured_by = ""
        """Who gets the keys that people type, if not the program."""
        self.problem = "connecting"
        """Why the picture may be an old one; empty while it is not."""
        self._sending = TaskSet()
        self._task = asyncio.ensure_future(self._run())

    @property
    def title(self) -> str:
        return self.terminal.title

    async def _run(self) -> None:
        """Show it until it ends; a server that comes back is asked again."""
        while self.running:
            with contextlib.suppress(*_LOST):
                await self._show()
            if self.running:
                await asyncio.sleep(_AGAIN_S / 4)

    async def _show(self) -> None:
        asked = {"rows": self.terminal.rows, "cols": self.terminal.cols, "scrollback": _SCROLLBACK}
        url = f"ws://localhost/sessions/{quote(self.name, safe='')}/ws/view?{urlencode(asked)}"
        async with unix_connect(str(self._path), url, max_size=None, compression=None) as connection:
            rows, cols = self.terminal.rows, self.terminal.cols
            self.terminal.close()
            self.terminal = Terminal(rows, cols)
            self._connection = connection
            self.problem = ""
            if (rows, cols) != (asked["rows"], asked["cols"]):  # the window took its size while we were connecting
                self._send_size()
            try:
                whole = True
                async for message in connection:
                    if isinstance(message, bytes):
                        # The whole picture comes first, and again after a death of ours: what kills must not do so twice.
                        if whole and attempt(partial(self.terminal.feed, message), _ENGINE_S).how == "died":
                            message = _DEADLY
                            self.running = False
                        whole = False
                        self.terminal.feed(message)
                        self.terminal.take_replies()
                        self.terminal.take_events()
                        if not self.running:
                            return
                    else:
                        self._hear(json.loads(message))
                    self._on_change()
            finally:
                self._connection = None
                self.problem = _LAST_PICTURE.format("the server")
                self.captured_by = ""
                self._on_change()

    def _hear(self, message: dict[str, object]) -> None:
        match message.get("type"):
            case "exit" | "dismissed":
                self.running = False
            case "host":
                self.problem = "" if message.get("online") else _LAST_PICTURE.format(message.get("host"))
            case "input_mode":
                self.captured_by = str(message.get("owner") or "") if message.get("mode") == "capture" else ""

    def resize(self, rows: int, cols: int) -> None:
        if (rows, cols) != (self.terminal.rows, self.terminal.cols):
            self.terminal.resize(rows, cols)
            self._send_size()

    def _send_size(self) -> None:
        self._send(json.dumps({"type": "resize", "rows": self.terminal.rows, "cols": self.terminal.cols}))

    async def send_input(self, data: bytes) -> None:
        """Type as this viewer; the server knows which one it is."""
        if self._connection is not None:
            with contextlib.suppress(*_LOST):
                await self._connection.send(data)

    def _send(self, message: str) -> None:
        async def send(connection: ClientConnection) -> None:
            with contextlib.suppress(*_LOST):
                await connection.send(message)

        if self._connection is not None:
            self._sending.start(send(self._connection))

    async def aclose(self) -> None:
        self.running = False
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.terminal.close()
