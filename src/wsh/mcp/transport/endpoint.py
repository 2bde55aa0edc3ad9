"""What the HTTP server mounts at `/mcp`: Streamable HTTP for everybody, and the line stream of `wsh mcp` on the unix
socket.

Authentication, Host and Origin are settled before a request comes here. This file answers what is no JSON-RPC at all,
hands the rest to the SDK, and keeps count of who is connected.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from wsh.mcp.call import CallRunner
from wsh.mcp.caller import ConnectionSurroundings
from wsh.mcp.registry import Registry, parse_toolsets
from wsh.mcp.resource.index import ResourceIndex
from wsh.mcp.resource.prompt import PromptIndex
from wsh.mcp.resource.session_resources import SessionResources
from wsh.mcp.sdk_compat import CANCEL_ANSWER, end_longest_idle
from wsh.mcp.server import CALLER_KEY, MODERN_VERSION, ConnectedClient, McpDoor, build_server
from wsh.mcp.tool.all import list_tools
from wsh.mcp.transport.stdio import StdioLink, serve_link
from wsh.operation.context import Rooms
from wsh.wire.caller import Caller
from wsh.wire.json import rpc

log = logging.getLogger(__name__)


class McpEndpoint:
    """An ASGI application. `identify` tells who sent a request that the HTTP door let through."""

    def __init__(
        self,
        door: McpDoor,
        identify: Callable[[Scope], Caller],
        *,
        idle_sessions: int = 32,
        session_idle_s: float = 1800,
    ) -> None:
        self.door = door
        self.server = build_server(door)
        self.links: set[StdioLink] = set()
        self.on_links_changed: Callable[[int], None] = lambda count: None
        self._identify = identify
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[tuple[str, bytes, str | None]] = set()
        """Requests of sessions under way: caller, session, id."""
        self._closing = False
        # Event streams, not JSON: only then does a modern client that goes away cancel its call.
        self._manager = StreamableHTTPSessionManager(
            app=self.server,
            json_response=False,
            max_request_body_size=rpc.MAX_MESSAGE_BYTES,
            session_idle_timeout=session_idle_s,
        )
        self._idle_sessions = idle_sessions

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve while this is entered; calls under way are cancelled at its end."""
        async with self._manager.run():
            self.door.resources.start()
            try:
                yield
            finally:
                self._closing = True
                self.door.resources.stop()
                for link in self.links:
                    # What is under way is not over for the pump: it tells its host, and listens again elsewhere.
                    link.mute()
                await self.door.calls.aclose()
                for task in list(self._tasks):
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # httptools keeps trailing blanks of header values. The SDK gives no answer to who would go on after an event: it stores none.
        headers = [(key, value.strip(b" \t")) for key, value in scope["headers"] if key != b"last-event-id"]
        caller = self._identify(scope)
        user = AuthenticatedUser(AccessToken(token="-", client_id=caller.id, scopes=[]))
        scope = {**scope, "headers": headers, CALLER_KEY: caller, "user": user}
        send = _polished(send)
        if scope["path"].rstrip("/").endswith("/stdio"):
            await self._serve_stdio(scope, caller, receive, send)
        elif scope["method"] == "POST":
            if dict(headers).get(b"content-type", b"").partition(b";")[0].strip().lower() == b"application/json":
                # The SDK minds the case.
                scope["headers"] = [(k, b"application/json" if k == b"content-type" else v) for k, v in headers]
                await self._serve_post(scope, caller, receive, send)
            else:
                bad = rpc.BadMessage(rpc.INVALID_REQUEST, "Unsupported Media Type: send application/json.")
                await _refuse(415, bad, scope, receive, send)
        else:
            await self._manager.handle_request(scope, receive, send)

    async def _serve_post(self, scope: Scope, caller: Caller, receive: Receive, send: Send) -> None:
        body = await _read_body(receive)
        if isinstance(body, rpc.BadMessage):
            await _refuse(413, body, scope, receive, send)
            return
        read = await asyncio.to_thread(rpc.parse, body) if len(body) > 1 << 20 else rpc.parse(body)
        if isinstance(read, rpc.BadMessage):
            await _refuse(400, read, scope, receive, send)
            return
        sent = dict(scope["headers"])
        version = sent.get(b"mcp-protocol-version", b"").decode("latin-1")
        if read.is_notification and read.method == "$/cancelRequest" and version == MODERN_VERSION:
            # The SDK drops notifications of this era: it knows no connection that they could belong to. A token is one.
            self.door.calls.cancel(f"token:{caller.id}", read.params.get("id"))
            await Response(status_code=202)(scope, receive, send)
            return
        if read.method == "initialize":
            end_longest_idle(self._manager, self._idle_sessions - 1)
        if read.normalised:
            body = rpc.dump(read.body)
            headers = [(k, v) for k, v in scope["headers"] if k != b"content-length"]
            scope = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
        session = sent.get(b"mcp-session-id")
        if session is None or not read.is_request:
            await self._manager.handle_request(scope, _replay(body, receive), send)
            return
        key = (caller.id, session, rpc.canonical_id(read.id))
        if key in self._open:  # the SDK would forget who waits for the first
            problem = f"Invalid Request: the id {read.id!r} is in use by a request that is under way."
            await _refuse(400, rpc.BadMessage(rpc.INVALID_REQUEST, problem, read.id), scope, receive, send)
            return
        self._open.add(key)
        try:
            await self._manager.handle_request(scope, _replay(body, receive), send)
        finally:
            self._open.discard(key)

    async def _serve_stdio(self, scope: Scope, caller: Caller, receive: Receive, send: Send) -> None:
        refusal = (
            404 if caller.proof != "unix" else 405 if scope["method"] != "POST" else 503 if self._closing else None
        )
        if refusal is not None:
            await Response(status_code=refusal)(scope, receive, send)
            return
        here: list[StdioLink] = []

        def opened(link: StdioLink) -> None:
            here.append(link)
            self.links.add(link)
            self.door.clients[f"stdio:{link.surroundings.id}"] = ConnectedClient(caller, "mcp-stdio")
            self.on_links_changed(len(self.links))

        # A task of its own: the end of the server cancels it, and the SDK's scopes stay in one task.
        serving = serve_link(
            self.server, caller, self.door.home, receive, send, scope["state"].get("connection"), opened
        )
        task = asyncio.ensure_future(serving)
        self._tasks.add(task)
        try:
            await asyncio.wait({task})
            if task.cancelled():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            elif (problem := task.exception()) is not None:
                log.error("a stdio connection broke off", exc_info=problem)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        finally:
            self._tasks.discard(task)
            for link in here:
                self.links.discard(link)
                self.door.tell_end(f"stdio:{link.surroundings.id}")
                self.on_links_changed(len(self.links))


def identify(scope: Scope) -> Caller:
    """Whom the gateway let in."""
    caller: Caller = scope["state"]["caller"]
    return caller


def open_door(rooms: Rooms) -> McpEndpoint:
    """The whole MCP door over these rooms. Enter its `run` to serve."""
    settings = rooms.settings
    toolsets = parse_toolsets(settings.get_list("mcp.toolsets"))
    door = McpDoor(
        Registry(tool.bind(rooms) for tool in list_tools(settings, os.environ)),
        CallRunner(
            queue_size=settings.get_int("mcp.queue_size"),
            progress_per_second=settings.get_float("mcp.progress_per_second"),
        ),
        ConnectionSurroundings.of_server(toolsets),
        ResourceIndex(SessionResources(rooms)),
        PromptIndex(),
    )
    door.end_listeners += [rooms.marks.forget_owner, rooms.stages.end_leases, rooms.far_leases.end]
    return McpEndpoint(
        door,
        identify,
        idle_sessions=settings.get_int("mcp.idle_sessions"),
        session_idle_s=settings.get_int("mcp.session_idle_s"),
    )


async def _read_body(receive: Receive) -> bytes | rpc.BadMessage:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return rpc.BadMessage(rpc.INVALID_REQUEST, "The client went away.")
        chunk = message.get("body", b"")
        size += len(chunk)
        more = message.get("more_body", False)
        if size <= rpc.MAX_MESSAGE_BYTES:
            chunks.append(chunk)
            if not more:
                return b"".join(chunks)
            continue
        # The rest is taken in, within reason: closing on a client that still sends would cost it the answer.
        chunks.clear()
        if not more or size > 4 * rpc.MAX_MESSAGE_BYTES:
            problem = f"Invalid Request: a message may have {rpc.MAX_MESSAGE_BYTES} bytes."
            return rpc.BadMessage(rpc.INVALID_REQUEST, problem)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, and then what the client really does (such as going away)."""
    first = True

    async def again() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _polished(send: Send) -> Send:
    """What goes out as events: separators escaped, and no answer to a call that the client took back."""

    async def polished(message: Message) -> None:
        body = message.get("body")
        # With a length announced, the bytes must stay as many; such answers are read whole, not by lines.
        if body and b"data:" in body[:64]:
            body = b": cancelled\r\n\r\n" if CANCEL_ANSWER.search(body[:512]) else rpc.escape_separators(body)
            message = {**message, "body": body}
        await send(message)

    return polished


async def _refuse(status: int, bad: rpc.BadMessage, scope: Scope, receive: Receive, send: Send) -> None:
    response = Response(rpc.dump(bad.to_wire()), status_code=status, media_type="application/json")
    await response(scope, receive, send)
