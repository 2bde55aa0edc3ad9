"""The raw WebSocket of a session: the program's bytes out, keys in.

First a replay that brings a fresh emulator into the session's state, then every byte as it comes; a client that falls behind gets a new
replay (`slow_consumer.py`). Keys of the owner are a person's keys: while input is captured they become events, except at a hidden prompt.
"""

from __future__ import annotations

import asyncio

from starlette.websockets import WebSocket, WebSocketDisconnect

from wsh.http.route.table import HttpCall
from wsh.http.ws.far_stream import serve_far
from wsh.http.ws.sender import BINARY, WsSender, make_frame, make_head
from wsh.http.ws.slow_consumer import SlowConsumer, get_allowance
from wsh.operation.context import Rooms
from wsh.session.event import Destroyed, Exited, SessionEvent
from wsh.session.session import Session
from wsh.terminal.input.key import parse_keys
from wsh.wire.caller import Caller
from wsh.wire.error import HiddenInputRefused, SandboxRefused, SessionExited, SessionTaken, ToolsetRefused, WshError

_UNFINISHED_S = 0.25
"""How long an unfinished escape sequence may hold up the replay."""


class RawStream:
    def __init__(self, rooms: Rooms, session: Session, caller: Caller, websocket: WebSocket) -> None:
        self._rooms = rooms
        self._session = session
        self._caller = caller
        self._outlet = WsSender(websocket)
        self._stream = SlowConsumer(self._outlet, get_allowance(rooms.settings), self._replay)
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._ended = False
        self._gone = False

    async def run(self) -> None:
        websocket, session = self._outlet.websocket, self._session
        viewer = f"raw:{id(self):x}"
        stops = [
            self._rooms.clients.enter(session, self._caller, "raw", lambda: self._outlet.close_soon(1000, "detached"))
        ]
        try:
            await websocket.accept()
            stops += [session.output.tap(self._on_output), session.listeners.add(self._on_event)]
            self._ended = not session.running
            self._stream.start()
            while True:
                message = await websocket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                text = message.get("text")
                await self._type(message.get("bytes") or (text or "").encode(), viewer)
                await self._outlet.wait_until_writable()
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            for stop in stops:
                stop()
            self._stream.close()

    async def _type(self, data: bytes, viewer: str) -> None:
        if not data:
            return
        control = self._rooms.stages.of(self._session).input
        try:
            if self._caller.is_owner and control.is_diverting(self._session):
                for key, raw in parse_keys(data):
                    control.divert(raw, key, viewer)
            else:
                self._rooms.check_offered("terminal", self._caller)
                await self._session.input.send(data, self._caller.actor)
        except (HiddenInputRefused, SandboxRefused, ToolsetRefused) as problem:
            self._outlet.close_soon(1008, problem.message[:100])
        except (SessionExited, SessionTaken):
            # Keys have no answer; the client sees that nothing comes of them.
            pass
        except WshError:
            self._outlet.close_soon(1013, "the program does not read its input")

    # output

    def _on_output(self, start: int, data: bytes) -> None:
        if self._stream.is_behind:
            self._stream.look()
        elif not self._stream.send(make_head(len(data), BINARY), data):
            self._since = self._loop.time()

    def _replay(self, skipped: int) -> bool:
        """Send the replay, if the stream stands between two sequences."""
        if self._gone:
            return False
        terminal = self._session.terminal
        if not terminal.at_ground and self._loop.time() - self._since < _UNFINISHED_S:
            return False
        self._outlet.write(make_frame(terminal.replay(), BINARY))
        if self._ended:
            self._outlet.close_soon(1000, "the program ended")
        return True

    def _on_event(self, event: SessionEvent) -> None:
        if isinstance(event, Exited):
            self._ended = True
            if not self._stream.is_behind:
                self._outlet.close_soon(1000, "the program ended")
        elif isinstance(event, Destroyed):
            self._gone = True
            self._outlet.close_soon(1000, "the session ended")


async def serve_raw(call: HttpCall, websocket: WebSocket) -> None:
    if "/" in call.session_name:
        return await serve_far(call, websocket, "raw")
    session = call.rooms.registry.get_session(call.session_name)
    await RawStream(call.rooms, session, call.caller, websocket).run()
