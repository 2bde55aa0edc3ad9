"""The far end of `wsh.host.link`: another server of the same person sends calls for its callers, and hears news of our sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect

from wsh.host.carrier import PROTOCOL, ForwardedCall
from wsh.host.receive import Receiver
from wsh.http.route.table import HttpCall, dump_json
from wsh.http.ws.sender import WsSender, make_frame
from wsh.operation.news import NOTICE_TOLD, follow_sessions
from wsh.wire.error import InvalidRequest, OwnerOnly, WshError
from wsh.wire.system.task_set import TaskSet
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.operation.context import Rooms
    from wsh.wire.caller import Caller
    from wsh.wire.json.object import JsonObject

_MOST_CHARS = 64 * 1024 * 1024
"""A message in pieces may have so many characters together."""


class LinkServer:
    """Calls outlive the connection that brought them: they belong to the server."""

    def __init__(self, rooms: Rooms, proven: Caller, receiver: Receiver, websocket: WebSocket) -> None:
        self._rooms = rooms
        self._proven = proven
        self._receiver = receiver
        self._websocket = websocket
        self._outlet = WsSender(websocket)
        self._answering = TaskSet()
        self._pieces: list[str] = []

    async def run(self) -> None:
        stop = self._rooms.clients.enter(None, self._proven, "json", lambda: self._outlet.close_soon(1000, "detached"))
        follow = deaf = None
        try:
            await self._websocket.accept()
            server = self._rooms.server
            self._write(
                {
                    "welcome": {
                        "version": VERSION,
                        "protocol": PROTOCOL,
                        "hostname": server.hostname,
                        "server_id": server.server_id,
                    }
                }
            )
            follow = follow_sessions(self._rooms, lambda news: self._write({"news": news}))
            deaf = self._rooms.notices.listen(lambda: self._write({"news": {"event": NOTICE_TOLD}}))
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self._take(message.get("text") or "")
                await self._outlet.wait_until_writable()
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            stop()
            if follow is not None:
                follow()
            if deaf is not None:
                deaf()
            await self._answering.aclose()

    async def _take(self, text: str) -> None:
        message = _parse(text)
        if "part" in message:
            self._pieces.append(str(message["part"]))
            if sum(map(len, self._pieces)) > _MOST_CHARS:
                self._outlet.close_soon(1009, "the message is too long")
            return
        if "end" in message:
            message = _parse("".join([*self._pieces, str(message["end"])]))
            self._pieces.clear()
        if "call" in message:
            self._answering.start(self._answer(message["call"]))
        elif "done" in message or "cancel" in message:
            self._receiver.cancel(str(message.get("done", message.get("cancel"))))

    async def _answer(self, wire: object) -> None:
        try:
            call = ForwardedCall.from_wire(wire)
        except WshError as problem:
            self._outlet.close_soon(1008, problem.message[:100])
            return
        answer = await self._receiver.answer(call, lambda told: self._write({"id": call.id, "progress": told}))
        self._write({"id": call.id, "answer": answer.to_wire()})

    def _write(self, body: JsonObject) -> None:
        self._outlet.write(make_frame(dump_json(body)))


def _parse(text: str) -> JsonObject:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidRequest("The message is not a JSON object.")
    return found


async def serve_link(call: HttpCall, websocket: WebSocket) -> None:
    """Only for the owner's own connections: what comes by it names its callers itself."""
    if not call.caller.is_owner or call.caller.via:
        raise OwnerOnly(call.caller.fault)
    await LinkServer(call.rooms, call.caller, call.rooms.receiver, websocket).run()
