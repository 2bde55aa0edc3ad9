"""A subscription to the events of a session on another machine: made there, passed on here, made again after a cut."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from wsh.host.address import parse_address
from wsh.host.carrier import ForwardedCaller, Stream, StreamRequest
from wsh.http.route.table import dump_json
from wsh.http.ws.subscription import Subscribe
from wsh.operation.forward import adopt_error
from wsh.wire.error import HostUnreachable, WshError, from_wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wsh.operation.context import Rooms
    from wsh.wire.caller import Caller
    from wsh.wire.json.object import JsonObject

_RETRY_S = 0.3


class FarSubscription:
    """`relay` passes each event on, and returns when the client can take the next. `named`: events say of which session they are.

    `on_end` is told with which code and reason the host ended it, and not of a `close`.
    """

    def __init__(
        self,
        rooms: Rooms,
        caller: Caller,
        address: str,
        wanted: Subscribe,
        relay: Callable[[JsonObject], Awaitable[None]],
        on_end: Callable[[FarSubscription, int, str], None],
        *,
        named: bool,
    ) -> None:
        host, name = parse_address(address)
        assert host is not None
        self.address = address
        self._rooms = rooms
        self._host = host
        self._carrier = rooms.hosts.get_carrier(host)
        self._request = StreamRequest("json", name, {}, ForwardedCaller.of(caller, rooms.server.hostname))
        self._asked = dump_json(
            {"id": 0, "method": "subscribe", "params": wanted.model_dump(exclude_unset=True)}
        ).decode()
        self._pass_on = relay
        self._on_end = on_end
        self._named = named
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self.started = False
        self.closed = False

    def rename(self, address: str) -> None:
        """The session has another name there."""
        self.address = address
        self._request = replace(self._request, session=parse_address(address).name)

    async def open(self) -> JsonObject:
        """The host's answer. Raises what it refuses with, or HostUnreachable."""
        try:
            return await self._ask()
        except WshError as problem:
            raise adopt_error(problem, self._host) from None

    async def _ask(self) -> JsonObject:
        self._stream = await self._carrier.open_stream(self._request)
        await self._stream.send(self._asked)
        while True:
            message = await self._stream.receive()
            if message is None:
                raise HostUnreachable(self._host, "the connection was closed")
            said = json.loads(message)
            if said.get("id") == 0 and "method" in said:
                if "error" in said:
                    raise from_wire(said["error"])
                return cast("JsonObject", said["result"])

    def start(self) -> None:
        self.started = True
        self._task = asyncio.ensure_future(self._relay())

    async def _relay(self) -> None:
        code, reason = 1000, ""
        try:
            while not self.closed:
                try:
                    assert self._stream is not None
                    message = await self._stream.receive()
                except HostUnreachable:
                    await self._resume()
                    continue
                if message is None:
                    code, reason = self._stream.closed
                    if self._named and reason == "detached":  # meant for the clients of that session alone
                        await self._resume()
                        continue
                    break
                said = json.loads(message)
                if "event" in said:
                    await self._pass_on(said | {"session": self.address} if self._named else said)
        except WshError as problem:  # the session ended while the host was away, or the host was removed
            reason = problem.message[:100]
        if not self.closed:
            self._on_end(self, code, reason)

    async def _resume(self) -> None:
        while True:
            await self._drop()
            try:
                await self.open()
                return
            except HostUnreachable:
                if self._rooms.hosts.find_carrier(self._host) is not self._carrier:
                    raise
                await asyncio.sleep(_RETRY_S)

    async def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    def close(self) -> None:
        self.closed = True
        if self._task is not None:
            self._task.cancel()
        asyncio.ensure_future(self._drop())  # noqa: RUF006  # bounded by the stream's own close
