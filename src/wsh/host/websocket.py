"""WebSockets to a wsh server over a socket that is open already: the server's own unix socket, or what a carrier made of it."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus

from wsh.host.carrier import CALLER_HEADER, StreamRequest
from wsh.wire.error import HostUnreachable, WshError, from_wire

SILENT_S = 15.0
"""A connection on which no ping is answered for so long is half open: it counts as cut. It is asked three times meanwhile."""

_CUT = {(1012, ""), (1011, "keepalive ping timeout")}
"""What a server says that ends and leaves its sessions to the next one, or that had no answer to its pings: no end of the session."""


class HandshakeLost(Exception):
    """The connection ended before the server answered: nobody listens behind it."""


async def open_websocket(
    sock: socket.socket,
    path: str,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
    silent_s: float = SILENT_S,
) -> ClientConnection:
    """Owns `sock`. Raises the WshError that the server refused with, or HandshakeLost."""
    try:
        return await unix_connect(
            uri=f"ws://localhost{path}",
            sock=sock,
            additional_headers=dict(headers or {}),
            user_agent_header=None,
            compression=None,
            max_size=None,
            open_timeout=timeout_s,
            ping_interval=silent_s / 3,
            ping_timeout=silent_s,
            close_timeout=1.0,
            max_queue=64,
        )
    except InvalidStatus as refused:
        sock.close()
        raise _read_refusal(refused) from None
    except (OSError, EOFError, InvalidHandshake, InvalidMessage, ConnectionClosed, TimeoutError) as problem:
        sock.close()
        raise HandshakeLost(str(problem) or type(problem).__name__) from None


def _read_refusal(refused: InvalidStatus) -> WshError:
    try:
        return from_wire(json.loads(refused.response.body or b"")["error"])
    except (ValueError, KeyError, TypeError):
        return WshError(f"The host's server answered with status {refused.response.status_code}.")


class WebSocketStream:
    """A `Stream` over one WebSocket."""

    def __init__(self, host: str, connection: ClientConnection) -> None:
        self._host = host
        self._connection = connection
        self.closed = (1006, "")

    async def send(self, message: str | bytes) -> None:
        try:
            await self._connection.send(message)
        except (ConnectionClosed, OSError):
            raise HostUnreachable(self._host, "the connection was cut") from None

    async def receive(self) -> str | bytes | None:
        try:
            return await self._connection.recv()
        except ConnectionClosed as end:
            if end.rcvd is None or (end.rcvd.code, end.rcvd.reason) in _CUT:
                raise HostUnreachable(self._host, "the connection was cut") from None
            self.closed = (end.rcvd.code, end.rcvd.reason)
            return None
        except OSError:
            raise HostUnreachable(self._host, "the connection was cut") from None

    async def aclose(self) -> None:
        await self._connection.close()


async def open_web_stream(
    host: str, sock: socket.socket, request: StreamRequest, silent_s: float = SILENT_S
) -> WebSocketStream:
    """The stream that a request names, at the server behind `sock`. Raises what the server refuses it with, or HandshakeLost."""
    query = f"?{urlencode(request.query)}" if request.query else ""
    path = f"/sessions/{quote(request.session, safe='')}/ws/{request.kind}{query}"
    caller = quote(json.dumps(request.caller.to_wire()))
    return WebSocketStream(host, await open_websocket(sock, path, {CALLER_HEADER: caller}, silent_s=silent_s))
