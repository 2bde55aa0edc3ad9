"""The far end of `wsh.host.link`: another server of the same person sends calls for its callers, and hears news of our sessions.

On a slow link nothing grows: answers are sent one after the other, each in pieces that are written as the one before is taken, so that an answer to
a ping comes between them. News and progress that wait for longer than the ceiling of every client (`slow_consumer.py`) cut the link; the
other server connects again, asks for its answers again and lists anew.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect

from wsh.host.carrier import PROTOCOL, ForwardedCall
from wsh.host.receive import Receiver
from wsh.http.route.table import HttpCall, dump_json
from wsh.http.ws.sender import CONTINUED, FINAL, TEXT, WsSender, make_head
from wsh.http.ws.slow_consumer import dismiss_if_unread, get_allowance
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
_PIECE_BYTES = 64 * 1024


class LinkServer:
    """Calls outlive the connection that brought them: they belong to the server."""

    def __init__(self, rooms: Rooms, proven: Caller, receiver: Receiver, websocket: WebSocket) -> None:
        self._rooms = rooms
        self._proven = proven
        self._receiver = receiver
        self._websocket = websocket
        self._outlet = WsSender(websocket)
        self._allowance = get_allowance(rooms.settings)
        self._sending = asyncio.Lock()
        self._untold_bytes = 0
        """News and progress that wait for their turn."""
        self._answering = TaskSet()
        self._pieces: list[str] = []

    async def run(self) -> None:
        stop = self._rooms.clients.enter(None, self._proven, "json", lambda: self._outlet.close_soon(1000, "detached"))
        follow = deaf = None
        try:
            await self._websocket.accept()
            server = self._rooms.server
            await self._send(
                {
                    "welcome": {
                        "version": VERSION,
                        "protocol": PROTOCOL,
                        "hostname": server.hostname,
                        "server_id": server.server_id,
                    }
                }
            )
            follow = follow_sessions(self._rooms, lambda news: self._tell({"news": news}))
            deaf = self._rooms.notices.listen(lambda: self._tell({"news": {"event": NOTICE_TOLD}}))
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
        answer = await self._receiver.answer(call, lambda told: self._tell({"id": call.id, "progress": told}))
        await self._send({"id": call.id, "answer": answer.to_wire()})

    def _tell(self, body: JsonObject) -> None:
        """News and progress have no one who waits for them to be sent: what waits is counted."""
        if self._outlet.is_open:
            payload = dump_json(body)
            self._untold_bytes += len(payload)
            self._answering.start(self._send_told(payload))
            dismiss_if_unread(self._outlet, self._allowance, self._untold_bytes)

    async def _send_told(self, payload: bytes) -> None:
        try:
            async with self._sending:
                await self._write(payload)
        finally:
            self._untold_bytes -= len(payload)

    async def _send(self, body: JsonObject) -> None:
        async with self._sending:
            await self._write(dump_json(body))

    async def _write(self, payload: bytes) -> None:
        last = max(0, len(payload) - 1) // _PIECE_BYTES * _PIECE_BYTES
        for at in range(0, last + 1, _PIECE_BYTES):
            await self._outlet.wait_until_writable()
            piece = payload[at : at + _PIECE_BYTES]
            kind = (CONTINUED if at else TEXT & ~FINAL) | (FINAL if at == last else 0)
            self._outlet.write(make_head(len(piece), kind), piece)


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
