"""A stream of messages both ways between two nodes, with credit: each end sends only what the other has room for.

Both ends are this class. What an end may still send is counted in bytes; the other gives back what its reader has taken. So a reader
that is slow stops its own sender and nobody else's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from wsh.host.fleet.connection import ConnectionLost
from wsh.wire.error import HostUnreachable
from wsh.wire.error import from_wire as error_from_wire

Send: TypeAlias = Callable[[str, bytes], Awaitable[None]]
_OPEN_S = 15.0
_TEXT, _BYTES = b"t", b"b"
_MESSAGE_COST = 64
"""Counted for each message beside its bytes, so that empty ones are bounded, too."""


class CreditStream:
    """`send` brings a kind and its content to the other end; `lost` makes the error for a connection that is gone."""

    def __init__(self, send: Send, window: int, lost: Callable[[str], HostUnreachable]) -> None:
        self.on_end: Callable[[], object] = lambda: None
        self._send = send
        self._window = window
        self._lost = lost
        self._credit = window
        """What may still be sent. One message may go beyond it, so that a large one is never stuck."""
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._came: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._taken = 0
        """What the reader has taken and the other end was not told of yet."""
        self._sent = self._received = 0
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed: tuple[int, str] | None = None
        self._broken: Exception | None = None
        self._sending = asyncio.Lock()

    @property
    def is_over(self) -> bool:
        return self._closed is not None or self._broken is not None

    @property
    def closed(self) -> tuple[int, str]:
        return self._closed or (1006, "the connection was cut")

    async def wait_opened(self) -> None:
        """Raises what the other end refused it with, or HostUnreachable."""
        try:
            async with asyncio.timeout(_OPEN_S):
                await asyncio.shield(self._opened)
        except TimeoutError:
            raise self._lost("it did not answer in time") from None

    async def send(self, message: str | bytes) -> None:
        content = _TEXT + message.encode() if isinstance(message, str) else _BYTES + message
        async with self._sending:
            while self._credit <= 0 and not self.is_over:
                self._may_send.clear()
                await self._may_send.wait()
            self._check()
            self._credit -= len(content) + _MESSAGE_COST
            self._sent += 1
            await self._deliver("data", self._sent.to_bytes(8, "big") + content)

    async def receive(self) -> str | bytes | None:
        if self._came.empty():
            if self._broken is not None:
                raise self._broken
            if self._closed is not None:
                return None
        message = await self._came.get()
        if message is None:
            self._came.put_nowait(None)
            if self._broken is not None:
                raise self._broken
            return None
        self._taken += len(message.encode() if isinstance(message, str) else message) + 1 + _MESSAGE_COST
        if self._taken >= self._window // 2 and not self.is_over:
            taken, self._taken = self._taken, 0
            with suppress(HostUnreachable):  # the next look tells of it; what came before is given first
                await self._deliver("credit", str(taken).encode())
        return message

    def take(self, kind: str, content: bytes) -> None:
        """What the other end sent."""
        if self.is_over:
            return
        match kind:
            case "opened":
                if not self._opened.done():
                    self._opened.set_result(None)
            case "failed":
                self._break(error_from_wire(json.loads(content)))
            case "data":
                if int.from_bytes(content[:8], "big") != self._received + 1:
                    self.cut("a message was lost on the way")
                    return
                self._received += 1
                body = content[9:]
                self._came.put_nowait(body.decode() if content[8:9] == _TEXT else body)
            case "credit":
                self._credit += int(content)
                if self._credit > 0:
                    self._may_send.set()
            case "closed":
                code, reason = json.loads(content)
                self._end((int(code), str(reason)))
            case "unknown" | "restarted":
                self.cut("the node was started anew")
            case "late":
                self.cut("its clock differs from this machine's by too much")

    def cut(self, why: str) -> None:
        """The other end cannot be reached any more."""
        self._break(self._lost(why))

    async def keep(self) -> None:
        """Show the other end that somebody is here."""
        await self._deliver("keep", b"")

    async def open(self) -> None:
        await self._deliver("opened", b"")

    async def fail(self, error: dict[str, object]) -> None:
        """Refuse it, in place of `open`."""
        await self._deliver("failed", json.dumps(error).encode())
        self._end((1008, "refused"))

    async def close(self, code: int, reason: str) -> None:
        """Tell the other end that it is over, and why."""
        if not self.is_over:
            await self._deliver("closed", json.dumps([code, reason]).encode())
            self._end((code, reason))

    async def aclose(self) -> None:
        try:
            await self.close(1000, "")
        except HostUnreachable:
            pass
        self._end((1000, ""))
        self.on_end()

    async def _deliver(self, kind: str, content: bytes) -> None:
        try:
            await self._send(kind, content)
        except ConnectionLost as problem:
            self.cut(str(problem))
            self._check()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._closed is not None:
            raise self._lost("the stream is closed")

    def _break(self, error: Exception) -> None:
        if self.is_over:
            return
        self._broken = error
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()
        self._wake()

    def _end(self, closed: tuple[int, str]) -> None:
        if self.is_over:
            return
        self._closed = closed
        if not self._opened.done():
            self._opened.set_exception(self._lost(closed[1] or "the stream was closed"))
            self._opened.exception()
        self._wake()

    def _wake(self) -> None:
        self._may_send.set()
        self._came.put_nowait(None)
