"""The sending side of one WebSocket: whole frames, made once and written to as many connections as want them.

A server's frames are not masked, so the same bytes do for every client. Nothing here waits: `slow_consumer.py` says what a client
misses that does not read.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

FINAL, CONTINUED = 0x80, 0x00
TEXT, BINARY = FINAL | 0x01, FINAL | 0x02


def make_head(size: int, kind: int = TEXT) -> bytes:
    """What stands before a payload of so many bytes."""
    if size < 126:
        return bytes((kind, size))
    if size < 65536:
        return struct.pack("!BBH", kind, 126, size)
    return struct.pack("!BBQ", kind, 127, size)


def make_frame(payload: bytes, kind: int = TEXT) -> bytes:
    return make_head(len(payload), kind) + payload


class FrameWriter(Protocol):
    """What the listener's WebSocket protocol offers below ASGI."""

    writable: asyncio.Event
    on_bytes: Callable[[bytes], None] | None

    def write_frames(self, *parts: bytes) -> None: ...

    @property
    def buffered(self) -> int: ...


class WsSender:
    def __init__(self, websocket: WebSocket) -> None:
        self.websocket = websocket
        self._line: FrameWriter = websocket.scope["state"]["line"]
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._closing is None and self.websocket.application_state is WebSocketState.CONNECTED

    @property
    def buffered(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._line.buffered

    def write(self, *parts: bytes) -> None:
        """Whole frames; a long payload is best given apart from its head, because nothing is copied then."""
        if self.is_open:
            self._line.write_frames(*parts)

    def hear_bytes(self, listener: Callable[[bytes], None] | None) -> None:
        """Get binary messages as they arrive, without a turn of the loop between; some may still come by `receive`."""
        self._line.on_bytes = listener

    async def wait_until_writable(self) -> None:
        await self._line.writable.wait()

    def close_soon(self, code: int, reason: str) -> None:
        """Say goodbye; the reading side then sees the end."""
        if self.is_open:
            self._closing = asyncio.ensure_future(self._close(code, reason))

    async def _close(self, code: int, reason: str) -> None:
        try:
            await self.websocket.close(code, reason)
        except (RuntimeError, OSError, WebSocketDisconnect):
            pass
