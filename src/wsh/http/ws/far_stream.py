"""A viewer's or a raw WebSocket whose session is on another machine: messages pass both ways, through cuts.

When the connection to the host is cut, the client's WebSocket stays. It is told `host` (`online: false`), the stream is opened again as
soon as the host is back, and begins as every stream does, with a whole picture or a replay. Keys that are typed meanwhile reach nobody:
what a person types without seeing its effect would surprise them later.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect

from wsh.host.address import parse_address
from wsh.host.carrier import Carrier, ForwardedCaller, Stream, StreamKind, StreamRequest
from wsh.http.route.table import HttpCall
from wsh.http.ws.sender import BINARY, TEXT, WsSender, make_frame, make_head
from wsh.operation.forward import adopt_error, check_far_sandbox
from wsh.operation.sandbox import is_agent
from wsh.wire.error import HostUnreachable, InvalidRequest, WshError

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

_RETRY_S = 0.3
_RECEIPT = ("input_id", "typed")
"""Words by which a viewer is told what of its input was written; a server of 0.2 or earlier does not know them."""


class FarStream:
    def __init__(self, call: HttpCall, websocket: WebSocket, kind: StreamKind) -> None:
        host, name = parse_address(call.session_name)
        assert host is not None
        self._host = host
        self._rooms = call.rooms
        self._caller = call.caller
        self._carrier: Carrier = call.rooms.hosts.get_carrier(host)
        given = call.query.model_dump(mode="json", exclude_unset=True) if call.query is not None else {}
        query = {key: json.dumps(value) if isinstance(value, bool) else str(value) for key, value in given.items()}
        self._request = StreamRequest(kind, name, query, ForwardedCaller.of(call.caller, call.rooms.server.hostname))
        self._websocket = websocket
        self._outlet = WsSender(websocket)
        self._stream: Stream | None = None

    async def run(self) -> None:
        # Before the upgrade, so that a refusal is answered with a status.
        self._stream = await self._open()
        kind = self._request.kind
        leave = self._rooms.clients.enter(None, self._caller, kind, lambda: self._outlet.close_soon(1000, "detached"))
        deaf = self._rooms.hosts.listen(self._on_news)
        down: asyncio.Task[None] | None = None
        try:
            await self._websocket.accept()
            down = asyncio.ensure_future(self._bring_down())
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                text = message.get("text")
                await self._bring_up(text if text is not None else message.get("bytes") or b"")
        except (WebSocketDisconnect, OSError):
            pass
        finally:
            leave()
            deaf()
            if down is not None:
                down.cancel()
                await asyncio.gather(down, return_exceptions=True)
            if self._stream is not None:
                await self._stream.aclose()

    async def _open(self) -> Stream:
        """Raises what the host or the sandbox of agents refuses it with, or HostUnreachable."""
        if self._request.kind == "raw" and is_agent(self._caller):
            await check_far_sandbox(self._caller, self._host, self._request.session, self._rooms)
        try:
            return await open_far_stream(self._carrier, self._request)
        except WshError as problem:
            raise adopt_error(problem, self._host) from None

    def _on_news(self, host: str, news: JsonObject) -> None:
        if news["event"] == "session_renamed" and (host, news["old_name"]) == (self._host, self._request.session):
            self._request = replace(self._request, session=str(news["new_name"]))

    async def _bring_up(self, message: str | bytes) -> None:
        if isinstance(message, str) and self._request.kind == "view":
            self._note_size(message)
        stream = self._stream
        if stream is not None:
            with contextlib.suppress(HostUnreachable):
                await stream.send(message)

    def _note_size(self, message: str) -> None:
        """The stream is opened with this size after a cut."""
        if '"resize"' not in message:
            return
        with contextlib.suppress(ValueError, KeyError, TypeError):
            said = json.loads(message)
            if said["type"] == "resize":
                size = {"rows": str(int(said["rows"])), "cols": str(int(said["cols"]))}
                self._request = replace(self._request, query={**self._request.query, **size})

    async def _bring_down(self) -> None:
        try:
            while True:
                assert self._stream is not None
                try:
                    message = await self._stream.receive()
                except HostUnreachable as cut:
                    await self._resume(cut)
                    continue
                if message is None:
                    self._outlet.close_soon(*self._stream.closed)
                    return
                if isinstance(message, bytes):
                    self._outlet.write(make_head(len(message), BINARY), message)
                else:
                    self._outlet.write(make_frame(self._adopt(message).encode(), TEXT))
                await self._outlet.wait_until_writable()
        except WshError as problem:
            # The session ended while the host was away, or the host was removed.
            self._tell({"type": "dismissed", "reason": problem.message})
            self._outlet.close_soon(1000, problem.message[:100])

    async def _resume(self, cut: HostUnreachable) -> None:
        self._stream = None
        self._tell({"type": "host", "host": self._host, "online": False, "problem": cut.message})
        # What was printed earlier is with the client already, and keys of before are not sent again.
        self._request = _without(self._request, ("scrollback", *_RECEIPT))
        while True:
            try:
                self._stream = await self._open()
                break
            except HostUnreachable:
                if self._rooms.hosts.find_carrier(self._host) is not self._carrier:
                    raise
                await asyncio.sleep(_RETRY_S)
        self._tell({"type": "host", "host": self._host, "online": True})

    def _tell(self, message: JsonObject) -> None:
        if self._request.kind == "view":
            self._outlet.write(make_frame(json.dumps(message).encode(), TEXT))

    def _adopt(self, message: str) -> str:
        if '"renamed"' not in message:
            return message
        said = json.loads(message)
        if said.get("type") == "renamed" and isinstance(said.get("name"), str):
            said["name"] = f"{self._host}/{said['name']}"
            self._request = replace(self._request, session=said["name"].partition("/")[2])
        return json.dumps(said)


async def open_far_stream(carrier: Carrier, request: StreamRequest) -> Stream:
    """Open it, for a server of an earlier version without what that one does not know."""
    try:
        return await carrier.open_stream(request)
    except InvalidRequest:
        older = _without(request, _RECEIPT)
        if older.query == request.query:
            raise
        return await carrier.open_stream(older)


def _without(request: StreamRequest, words: tuple[str, ...]) -> StreamRequest:
    return replace(request, query={key: value for key, value in request.query.items() if key not in words})


async def serve_far(call: HttpCall, websocket: WebSocket, kind: StreamKind) -> None:
    await FarStream(call, websocket, kind).run()
