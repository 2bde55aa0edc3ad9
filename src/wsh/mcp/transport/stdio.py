"""One `wsh mcp` process, at the server's end: JSON-RPC lines both ways on one HTTP exchange over the unix socket.

The request's body is what the host wrote to stdin, the response's body is what it reads from stdout; neither ends
before the host does. One ordered stream keeps a cancel behind the call it cancels, and when it breaks, everything
that hung on the connection ends with it. The first line each way is a greeting, everything after it is MCP in
whichever era the host speaks. A greeting that says `"raw": true` and is answered with the same was the last of HTTP: the lines that
follow have no chunks around them, and end with the connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import anyio
import mcp_types as types
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError
from starlette.types import Receive, Send

from wsh.mcp.caller import MAX_CONNECTION_BYTES, ConnectionSurroundings
from wsh.mcp.quick_call import QuickCalls
from wsh.mcp.sdk_compat import WshServer
from wsh.mcp.transport.raw import RawConnection, RawOut
from wsh.wire.caller import Caller
from wsh.wire.json import rpc
from wsh.wire.json.object import JsonObject
from wsh.wire.line_feed import LineFeed
from wsh.wire.surrogate import mend_all
from wsh.wire.version import VERSION

log = logging.getLogger(__name__)

_LONG_BYTES = 1 << 20
MOST_UNANSWERED = 256
"""With so many requests unanswered, a host that reads nothing is not read either."""


class LineOut(Protocol):
    """Where lines go."""

    def write_now(self, line: bytes) -> bool:
        """False if that would have to wait."""

    async def write(self, line: bytes) -> None: ...


class StdioLink:
    """A connection under way. Messages that arrive by it carry it as their request context."""

    def __init__(self, caller: Caller, surroundings: ConnectionSurroundings, out: LineOut) -> None:
        self.caller = caller
        self.surroundings = surroundings
        self._out = out
        self._lock = asyncio.Lock()
        self._writers = 0
        """How many wait until they may write, or do."""
        self._caught_up = asyncio.Event()
        self._open: set[str] = set()
        self._muted = False
        self.quick_calls: QuickCalls | None = None
        """Takes plain calls, once the client has finished a handshake of an era that it knows."""

    def mute(self) -> None:
        """Say nothing more: the server ends, and an end without words is what the pump knows how to mend."""
        self._muted = True

    async def write(self, line: bytes) -> None:
        line = rpc.escape_separators(line)
        if self._writers == 0 and (self._muted or self._out.write_now(line)):
            return
        self._writers += 1
        try:
            async with self._lock:
                if not self._muted:
                    await self._out.write(line)
        finally:
            self._writers -= 1
            self._caught_up.set()

    @property
    def _is_behind(self) -> bool:
        return self._writers > 0 and len(self._open) >= MOST_UNANSWERED

    async def wait_until_read(self) -> None:
        """Waits while answers pile up for a host that does not read them."""
        while self._is_behind:
            self._caught_up.clear()
            await self._caught_up.wait()

    def take_at_once(self, line: bytes) -> bool:
        """Whether `line` was a plain call, or a word about one, and has been seen to."""
        if self.quick_calls is None or len(line) > _LONG_BYTES or self._is_behind:
            return False
        read = rpc.parse(line)
        return isinstance(read, rpc.Message) and self.quick_calls.take(read)

    def admit(self, id: rpc.Id) -> bool:
        """False if a request with an equivalent id is in flight."""
        key = rpc.canonical_id(id) or ""
        if key in self._open:
            return False
        self._open.add(key)
        return True

    def settle(self, id: object) -> None:
        self._open.discard(rpc.canonical_id(id) or "")


async def read_lines(receive: Receive) -> AsyncIterator[bytes | None]:
    """Lines of a request body; None stands for one that was too long and has been skipped."""
    pending = bytearray()
    skipping = False
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return
        pending += event.get("body", b"")
        while (end := pending.find(b"\n")) >= 0:
            line = bytes(pending[:end])
            del pending[: end + 1]
            yield None if skipping else line
            skipping = False
        if len(pending) > rpc.MAX_MESSAGE_BYTES:
            skipping = True
            pending.clear()
        if not event.get("more_body", False):
            return


class _Body:
    """Lines out as the body of the answer."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def write_now(self, line: bytes) -> bool:
        return False

    async def write(self, line: bytes) -> None:
        await self._send({"type": "http.response.body", "body": line, "more_body": True})


class _Stream:
    """Both directions end with the process."""

    def __init__(self, link: StdioLink) -> None:
        self._link = link

    async def aclose(self) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _In(_Stream):
    """The SDK's read stream: answers what is no message, passes on what is."""

    def __init__(self, link: StdioLink, lines: AsyncIterator[bytes | None]) -> None:
        self._link = link
        self._lines = lines

    async def receive(self) -> SessionMessage:
        await self._link.wait_until_read()
        async for line in self._lines:
            if line is not None and not line.strip():
                continue
            message = await self._admit(line)
            if message is not None:
                return message
            await self._link.wait_until_read()
        raise anyio.EndOfStream

    async def _admit(self, line: bytes | None) -> SessionMessage | None:
        if line is None:
            problem = f"Invalid Request: a message may have {rpc.MAX_MESSAGE_BYTES} bytes."
            await self._answer(rpc.BadMessage(rpc.INVALID_REQUEST, problem))
            return None
        read = await _parse(line)
        if isinstance(read, rpc.BadMessage):
            await self._answer(read)
            return None
        if self._link.quick_calls is not None and self._link.quick_calls.take(read):
            return None
        try:
            message = types.jsonrpc_message_adapter.validate_python(read.body, by_name=False)
        except ValidationError:
            await self._answer(rpc.BadMessage(rpc.INVALID_REQUEST, "Invalid Request", read.id))
            return None
        metadata = ServerMessageMetadata(request_context=self._link)
        if read.is_request and read.id is not None:
            id = read.id
            if not self._link.admit(id):
                problem = f"Invalid Request: the id {id!r} is in use by a request that is under way."
                await self._answer(rpc.BadMessage(rpc.INVALID_REQUEST, problem, id))
                return None

            async def unanswered() -> None:
                self._link.settle(id)

            metadata.on_request_unanswered = unanswered
        return SessionMessage(message, metadata)

    async def _answer(self, bad: rpc.BadMessage) -> None:
        await self._link.write(rpc.dump(bad.to_wire()))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Out(_Stream):
    """The SDK's write stream."""

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._link.settle(message.id)
        try:
            line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        except PydanticSerializationError:  # text that UTF-8 cannot carry; raised here, it would end the connection
            line = rpc.dump(mend_all(message.model_dump(by_alias=True, exclude_unset=True)))
        try:
            await self._link.write(line)
        except OSError:
            raise anyio.BrokenResourceError from None


async def _parse(line: bytes) -> rpc.Message | rpc.BadMessage:
    # Megabytes of JSON hold the interpreter for a while; a thread at least lets the loop take turns.
    return await asyncio.to_thread(rpc.parse, line) if len(line) > _LONG_BYTES else rpc.parse(line)


class GreetingRefused(Exception):
    """The greeting cannot be used."""


@dataclass(frozen=True)
class StdioGreeting:
    surroundings: ConnectionSurroundings
    raw: bool
    """Whether the client would speak without HTTP from here on."""


async def read_greeting(lines: AsyncIterator[bytes | None], home: ConnectionSurroundings) -> StdioGreeting:
    line = await anext(lines, None)
    if line is None or len(line) > MAX_CONNECTION_BYTES:
        raise GreetingRefused("The connection sent no greeting.")
    try:
        body: object = json.loads(line)
        said = body.get("wsh") if isinstance(body, dict) else None
        surroundings = ConnectionSurroundings.parse(said, home)
    except ValueError as problem:
        raise GreetingRefused(f"The greeting cannot be used: {problem}.") from None
    return StdioGreeting(surroundings, isinstance(said, dict) and said.get("raw") is True)


async def serve_link(
    server: WshServer,
    caller: Caller,
    home: ConnectionSurroundings,
    receive: Receive,
    send: Send,
    connection: RawConnection | None,
    opened: Callable[[StdioLink], None],
) -> None:
    """Serve one `wsh mcp` until either side ends. `opened` hears of it once it has greeted; `connection` is what lies below ASGI."""
    lines: AsyncIterator[bytes | None] = read_lines(receive)
    headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        greeting = await read_greeting(lines, home)
    except GreetingRefused as refusal:
        answer = rpc.dump({"wsh": {"refused": str(refusal)}})
        await send({"type": "http.response.body", "body": answer, "more_body": False})
        return
    if greeting.raw and connection is not None:
        await send(_to_body({"wsh": {"version": VERSION, "raw": True}}))
        link = StdioLink(caller, greeting.surroundings, RawOut(connection))
        lines = feed = LineFeed(pause=connection.pause, resume=connection.resume, most_bytes=rpc.MAX_MESSAGE_BYTES)
        feed.at_once = link.take_at_once
        connection.take_over(feed.feed, feed.end)
    else:
        connection = None
        await send(_to_body({"wsh": {"version": VERSION}}))
        link = StdioLink(caller, greeting.surroundings, _Body(send))
    opened(link)
    try:
        await serve_dual_era_loop(
            server,
            _In(link, lines),
            _Out(link),
            lifespan_state={},
            session_id=link.surroundings.id,
            init_options=server.create_initialization_options(),
        )
    finally:
        try:
            if link.quick_calls is not None:
                await link.quick_calls.aclose()
        finally:
            if connection is not None:
                connection.close()
    try:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except OSError:
        pass


def _to_body(greeting: JsonObject) -> dict[str, object]:
    return {"type": "http.response.body", "body": rpc.dump(greeting), "more_body": True}
