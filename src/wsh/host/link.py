"""One connection to the server of a host, for all calls and for its news: JSON over a WebSocket at `/host/link`.

    there: {"welcome": {version, protocol, hostname, server_id}}      first
    here:  {"hello": {protocol, host}}
    here:  {"call": ForwardedCall}    there: {"id", "answer": ForwardedAnswer}    here: {"done": id}
    there: {"id", "progress": {message, stream, phase}}    here:  {"cancel": id}
    there: {"news": …}
    here:  {"part": text} … then {"end": text}: a message that is longer than one may be, in pieces

Calls under way belong to the side that keeps the link alive: they are sent again over the next one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from wsh.host.carrier import PROTOCOL, ForwardedAnswer, ForwardedCall
from wsh.host.websocket import HandshakeLost
from wsh.wire.error import StateConflict

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

PATH = "/host/link"
PIECE_CHARS = 128 * 1024


class HostLink:
    """`on_answer`, `on_news` and `on_progress` are called as they come."""

    def __init__(
        self,
        connection: ClientConnection,
        on_answer: Callable[[str, ForwardedAnswer], None],
        on_news: Callable[[JsonObject], None],
        on_progress: Callable[[str, JsonObject], None],
    ) -> None:
        self._connection = connection
        self._on_answer = on_answer
        self._on_news = on_news
        self._on_progress = on_progress
        self._sending = asyncio.Lock()
        self.welcome: JsonObject = {}

    async def greet(self, host: str, timeout_s: float) -> None:
        """Learn who is there, and say who is here. Raises StateConflict where the two speak different protocols."""
        try:
            async with asyncio.timeout(timeout_s):
                self.welcome = dict(json.loads(await self._connection.recv())["welcome"])
        except (ConnectionClosed, OSError, TimeoutError, ValueError, KeyError, TypeError) as problem:
            raise HandshakeLost(f"its server did not say who it is ({type(problem).__name__})") from None
        if self.welcome.get("protocol") != PROTOCOL:
            raise StateConflict(
                f"wsh {self.welcome.get('version')} there speaks protocol {self.welcome.get('protocol')} between hosts, this one {PROTOCOL}",
                hint="Install the same version there: `wsh host install`.",
            )
        await self._send({"hello": {"protocol": PROTOCOL, "host": host}})

    async def serve(self) -> None:
        """Take in answers and news until the connection ends."""
        try:
            while True:
                message = json.loads(await self._connection.recv())
                if "answer" in message:
                    self._on_answer(str(message["id"]), ForwardedAnswer.from_wire(message["answer"]))
                elif "progress" in message:
                    self._on_progress(str(message["id"]), message["progress"])
                elif "news" in message:
                    self._on_news(message["news"])
        except (ConnectionClosed, OSError):
            pass

    async def send_call(self, call: ForwardedCall) -> None:
        """A connection that ended meanwhile is no failure: `serve` ends, and the call is sent again."""
        await self._send({"call": call.to_wire()})

    async def send_done(self, id: str) -> None:
        await self._send({"done": id})

    async def send_cancel(self, id: str) -> None:
        await self._send({"cancel": id})

    async def _send(self, message: JsonObject) -> None:
        text = json.dumps(message)
        try:
            async with self._sending:
                for at in range(0, len(text) - PIECE_CHARS, PIECE_CHARS):
                    await self._connection.send(json.dumps({"part": text[at : at + PIECE_CHARS]}))
                if len(text) > PIECE_CHARS:
                    text = json.dumps({"end": text[(len(text) - 1) // PIECE_CHARS * PIECE_CHARS :]})
                await self._connection.send(text)
        except (ConnectionClosed, OSError):
            pass

    async def aclose(self) -> None:
        await self._connection.close()
