"""Serve an ASGI application on open sockets: connections, their deadlines, and a bounded end.

uvicorn's protocols do the HTTP and WebSocket work; its server loop is not used, because it wakes ten times a second
and takes the process's signals. Added here are deadlines for clients that dawdle, a ceiling on header bytes, peer
credentials on the unix socket, and a count of who is connected. Routes and tokens are not known here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Literal

import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidHandshake

from wsh.http.server.frame_boundary import FrameBoundary, read_short
from wsh.wire.system.owner import find_peer_fault, own_limit

# Its parts ask the package for this name, which would import all the rest of it (see `open_package`).
uvicorn.Config = Config  # type: ignore[misc]  # the same class

log = logging.getLogger("wsh.http")

ASGIApp = Callable[..., object]
Door = Literal["tcp", "unix"]


@dataclass(frozen=True)
class ConnectionLimits:
    """Seconds and bytes that one connection may take."""

    header_bytes: int = 64 * 1024
    header_s: float = 10.0
    """From the first byte of a request to the end of its headers, and from the connection to its first request."""
    stalled_write_s: float = 60.0
    """How long a client may leave its socket full."""
    keep_alive_s: int = 15
    frame_bytes: int = 1024 * 1024
    ping_s: float = 30.0


@dataclass(frozen=True)
class ConnectionPeer:
    """The other end of a connection, as the kernel knows it."""

    door: Door
    uid: int | None = None
    pid: int | None = None
    fault: str | None = None
    """Why a process on the unix socket is not the owner's, decided when it connected; None if it is."""


class Presence:
    """Who is connected; tells `changed` when the first comes and the last goes."""

    def __init__(self) -> None:
        self.count = 0
        self.changed: Callable[[], None] = lambda: None

    def enter(self) -> None:
        self.count += 1
        if self.count == 1:
            self.changed()

    def leave(self) -> None:
        self.count -= 1
        if self.count == 0:
            self.changed()


class _Dates:
    """The Date header, made once a second and only when somebody asks."""

    def __init__(self) -> None:
        self._second = 0
        self.headers: list[tuple[bytes, bytes]] = []

    def refresh(self) -> list[tuple[bytes, bytes]]:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self.headers = [(b"date", formatdate(now, usegmt=True).encode())]
        return self.headers


def plain_error(status: int, code: str, message: str) -> bytes:
    """An answer for a client whose request cannot even be parsed."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    reason = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}[status]
    return (
        f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        "x-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
    ).encode() + body


class _Http(HttpToolsProtocol):
    """One HTTP connection with deadlines."""

    limits: ConnectionLimits
    door: Door
    presence: Presence
    dates: _Dates

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._in_headers = True
        self._present = False
        self.peer: ConnectionPeer | None = None
        self._on_bytes: Callable[[bytes], None] | None = None
        self._on_end: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn gives nothing else
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        try:
            self.peer = find_peer(sock, self.door)
        finally:
            if self.peer is None:  # also when the look at it failed: a peer that is not known gets an end, not silence
                transport.abort()
        if self.peer is None:
            return
        if self.door == "tcp":
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.app_state = {**self.app_state, "peer": self.peer}
        self._present = True
        self.presence.enter()
        # On the unix socket a silent connection is no nuisance: it says that its process is there.
        if self.door == "tcp":
            self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self._forget_stall()
        if self._present:
            self._present = False
            self.presence.leave()
        super().connection_lost(exc)
        on_end, self._on_bytes, self._on_end = self._on_end, None, None
        if on_end is not None:
            on_end()

    def data_received(self, data: bytes) -> None:
        if self._on_bytes is not None:
            self._on_bytes(data)
            return
        if self._in_headers:
            if self._deadline is None:
                self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > self.limits.header_bytes and not self.transport.is_closing():
            self.transport.write(plain_error(431, "too_large", "The request's headers are too large."))
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._forget_deadline()
        self._in_headers = False
        self.server_state.default_headers = self.dates.refresh()
        if self.door == "unix":
            self.scope["state"]["connection"] = self
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_headers = True
        self._header_bytes = 0
        super().on_message_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.header_s, self._too_slow)

    def handle_websocket_upgrade(self) -> None:
        self._forget_deadline()
        self._forget_stall()
        super().handle_websocket_upgrade()
        # The WebSocket's protocol stands in for this one from here on, and counts the client itself.
        if self._present:
            self._present = False
            self.presence.leave()

    # below ASGI

    def take_over(self, on_bytes: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """This exchange is HTTP no longer: what arrives goes to `on_bytes`, its end to `on_end`, and ASGI's calls do nothing."""
        self._on_bytes, self._on_end = on_bytes, on_end
        self.cycle.disconnected = True
        if self.transport.is_closing():
            on_end()
        else:
            self.flow.resume_reading()

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    @property
    def is_full(self) -> bool:
        """Whether the other end is slow to read: what is written now waits in memory."""
        return self.flow.write_paused

    async def drain(self) -> None:
        await self.flow.drain()

    def pause(self) -> None:
        if not self.transport.is_closing():
            self.flow.pause_reading()

    def resume(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def close(self) -> None:
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self.transport.write(plain_error(400, "invalid_request", "This is not an HTTP/1.1 request."))
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.limits.stalled_write_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_stall()

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.write(plain_error(408, "request_timeout", "The request's headers took too long."))
            self.transport.close()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _forget_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class _WebSocket(WebSocketsSansIOProtocol):
    """One WebSocket; closed when two pings in a row stay unanswered.

    What was written before a close is flushed first. A client that then takes nothing for as long as a pong may take is cut off.
    """

    presence: Presence

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._missed = 0
        self._present = False
        self.on_bytes: Callable[[bytes], None] | None = None
        """If set, called for binary messages at once, past the application's queue. Must not raise."""
        self._boundary: FrameBoundary | None = None
        self._flushing: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        boundary = self._boundary
        if boundary is None:  # the handshake, which comes by itself
            super().data_received(data)
            self._boundary = FrameBoundary()
            return
        if self.on_bytes is not None and boundary.is_between_messages and self._passes_at_once():
            key = read_short(data)
            if key is not None:
                self.on_bytes(key)
                return
        boundary.follow(data)
        super().data_received(data)

    def _passes_at_once(self) -> bool:
        """Whether a message may pass the application's queue: not before text that came earlier and still waits there."""
        return self.queue.empty() and not self.close_sent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._present = True
        self.presence.enter()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._present:
            self._present = False
            self.presence.leave()
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        super().connection_lost(exc)

    def handle_connect(self, event: Any) -> None:
        try:
            self.conn.process_request(event)
        except InvalidHandshake as problem:  # before the library answers it in words of its own
            self.handshake_initiated = self.handshake_complete = self.close_sent = True
            self.transport.write(plain_error(400, "invalid_request", f"This is no WebSocket handshake: {problem}."))
            self.transport.close()
            return
        super().handle_connect(event)
        if not self.close_sent:
            # The application's task has not run yet: it finds the way below ASGI here.
            self.scope["state"]["line"] = self

    def handle_bytes(self, event: Any) -> None:
        if self.on_bytes is not None and event.fin and self._passes_at_once():
            self.on_bytes(event.data)
        else:
            super().handle_bytes(event)

    def write_frames(self, *parts: bytes) -> None:
        """Send whole frames that somebody else made."""
        if self.handshake_complete and not self.close_sent and not self.disconnected:
            self.transport.writelines(parts)

    @property
    def buffered(self) -> int:
        return 0 if self.disconnected else self.transport.get_write_buffer_size()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            # A refused upgrade is an answer too; uvicorn would log it as one that never came.
            self.handshake_complete = True

    def handle_pong(self, event: Any) -> None:
        self._missed = 0
        super().handle_pong(event)

    def keepalive_timeout(self) -> None:
        self._missed += 1
        if self._missed < 2:
            self.pong_timer = None
            self.send_keepalive_ping()
            return
        super().keepalive_timeout()
        # Now, since `connection_lost` may be long in coming: what this client holds is let go.
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1011})
        self._bound_flush()

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self._bound_flush()

    def _bound_flush(self) -> None:
        """Nothing more will be written: make sure that the connection ends, whether or not the client reads the rest."""
        if self._flushing is None and not self.disconnected:
            self._look_at_flush_later()

    def _look_at_flush_later(self) -> None:
        self._flushing = self.loop.call_later(
            self.ping_timeout or self.close_timeout, self._look_at_flush, self.buffered
        )

    def _look_at_flush(self, before: int) -> None:
        if 0 < before == self.buffered:
            self.transport.abort()
        else:
            self._look_at_flush_later()


def find_peer(sock: socket.socket, door: Door) -> ConnectionPeer | None:
    """Who is at the other end; None for a stranger on the unix socket."""
    if door == "tcp":
        return ConnectionPeer("tcp")
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    if not admits(uid):
        log.warning("a process of another user (uid %d, pid %d) tried the unix socket and was turned away", uid, pid)
        return None
    return ConnectionPeer("unix", uid, pid, find_peer_fault(sock, own_limit()))


def admits(uid: int, own: int | None = None) -> bool:
    """Whether a process of user `uid` may use the unix socket: the owner, and root, who could do so anyway."""
    return uid in {os.getuid() if own is None else own, 0}


class Listener:
    """Serves `app` on some sockets until `aclose`, which asks, waits `grace_s`, and then cuts."""

    def __init__(self, app: ASGIApp, door: Door, limits: ConnectionLimits, presence: Presence) -> None:
        http = type("Http", (_Http,), {"limits": limits, "door": door, "presence": presence, "dates": _Dates()})
        websocket = type("WebSocket", (_WebSocket,), {"presence": presence})
        keep_alive = limits.keep_alive_s if door == "tcp" else 86_400
        self._config = Config(
            app,
            http=http,
            ws=websocket,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            ws_max_size=limits.frame_bytes,
            ws_ping_interval=limits.ping_s,
            ws_ping_timeout=limits.ping_s,
            ws_per_message_deflate=False,
            timeout_keep_alive=keep_alive,
        )
        self._config.load()
        self._state = ServerState()
        self._door = door
        self._servers: list[asyncio.Server] = []

    async def start(self, sockets: list[socket.socket], tls: ssl.SSLContext | None = None) -> None:
        loop = asyncio.get_running_loop()

        def make() -> asyncio.Protocol:
            protocol: asyncio.Protocol = self._config.http_protocol_class(  # type: ignore[call-arg]  # the class is chosen at run time
                config=self._config, server_state=self._state, app_state={}, _loop=loop
            )
            return protocol

        for sock in sockets:
            patience = 10.0 if tls else None
            server = await loop.create_server(make, sock=sock, ssl=tls, backlog=2048, ssl_handshake_timeout=patience)
            self._servers.append(server)

    async def aclose(self, grace_s: float) -> None:
        """Stop accepting, let requests under way finish for `grace_s`, then cancel what is left."""
        for server in self._servers:
            server.close()
        await _let_accepted_in()
        for connection in list(self._state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        # uvicorn's connections have no event to wait for
        while (self._state.tasks or self._state.connections) and loop.time() < deadline:  # noqa: ASYNC110  # uvicorn tells nobody when they end
            await asyncio.sleep(0.02)
        left = list(self._state.tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


async def _let_accepted_in() -> None:
    """A client that was accepted just before the socket closed is known only some turns of the loop later."""
    for _ in range(4):
        await asyncio.sleep(0)
