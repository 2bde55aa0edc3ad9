"""Calls and streams to another node."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from wsh.host.carrier import (
    PROTOCOL,
    ForwardedAnswer,
    ForwardedCall,
    HostState,
    News,
    ProgressListener,
    Stream,
    StreamRequest,
)
from wsh.host.fleet.connection import ConnectionLost, FleetConnection
from wsh.host.fleet.directory import FleetDirectory, Member
from wsh.host.fleet.stream import CreditStream
from wsh.host.fleet.tell import refresh_age
from wsh.wire.error import HostUnreachable, InvalidRequest

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

_ASK_S = 2.0
"""After so long without a word about a call, the node is asked whether it still has it."""
_STREAM_KEEP_S = 15.0


class NodeLink(Protocol):
    """What a carrier needs of this node."""

    @property
    def connection(self) -> FleetConnection | None: ...

    @property
    def directory(self) -> FleetDirectory: ...

    @property
    def problem(self) -> str | None: ...

    @property
    def may_call(self) -> bool: ...

    @property
    def stream_bytes(self) -> int: ...

    @property
    def gone_s(self) -> float:
        """A call under way outlives so long an absence of its node, or of NATS."""

    async def wait_connected(self, deadline_s: float) -> FleetConnection | None: ...


class NatsCarrier:
    """Brings calls and streams to one node of the fleet."""

    def __init__(self, link: NodeLink, member: Member) -> None:
        self._link = link
        self._member = member
        self._listeners: list[Callable[[News], None]] = []

    @property
    def state(self) -> HostState:
        member, facts = self._member, self._member.facts
        problem = None
        if not member.online:
            problem = self._link.problem or "the node has stopped beating"
        return HostState(
            name=member.name,
            kind="nats",
            target=self._link_target(),
            online=member.online,
            since=member.since,
            last_seen=member.last_seen,
            version=str(facts["version"]) if "version" in facts else None,
            protocol=facts["protocol"] if isinstance(facts.get("protocol"), int) else None,
            problem=problem,
        )

    def _link_target(self) -> str:
        return f"fleet, {', '.join(self._member.tags)}" if self._member.tags else "fleet"

    def list_sessions(self) -> list[JsonObject]:
        """SessionInfo of its sessions as it told last, without asking it."""
        return [refresh_age(info) for info in self._member.sessions.values()]

    def listen(self, listener: Callable[[News], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def tell(self, news: News) -> None:
        for listener in list(self._listeners):
            listener(news)

    async def aclose(self) -> None:
        self._listeners.clear()

    async def call(self, call: ForwardedCall, on_progress: ProgressListener | None = None) -> ForwardedAnswer:
        await self._check_there()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + call.deadline_s
        content = json.dumps(call.to_wire(), separators=(",", ":")).encode()
        exchange = _Exchange(on_progress)
        hold = self._link.directory.hold()
        try:
            while True:
                connection = await self._link.wait_connected(min(self._link.gone_s, deadline - loop.time()))
                if connection is None:
                    raise self._unreachable(self._link.problem or "NATS cannot be reached", exchange.made)
                stop = connection.listen(call.id, exchange.take)
                try:
                    return await self._exchange(connection, call, content, exchange, deadline)
                except ConnectionLost:
                    # The same call, on the next connection. The pause lets the node notice that this one is over.
                    await asyncio.sleep(0.05)
                finally:
                    stop()
        except asyncio.CancelledError:
            if self._link.connection is not None:
                await self._post(self._link.connection, "cancel", call.id)
            raise
        finally:
            hold()

    async def _exchange(
        self, connection: FleetConnection, call: ForwardedCall, content: bytes, exchange: _Exchange, deadline: float
    ) -> ForwardedAnswer:
        """Send it, or ask what became of it, and wait for the answer. Raises ConnectionLost when the connection ends first."""
        loop = asyncio.get_running_loop()
        member = self._member
        ask = True
        gone_at = None
        while True:
            if ask and exchange.sent_to is None:
                exchange.sent_to = member.start
                exchange.posts += 1
                await connection.post(member.name, member.instance, "call", call.id, content)
            elif exchange.sent_to != member.start:
                # Another start of the node was sent it and may have made it; nobody can say.
                if not call.repeatable:
                    raise self._unreachable("it was started anew meanwhile", "unknown")
                exchange.sent_to = None
                continue
            elif ask:
                exchange.posts += 1
                await connection.post(member.name, member.instance, "ask", call.id)
            left = deadline - loop.time()
            if left <= 0:
                raise self._unreachable("it did not answer in time", exchange.made)
            found = await exchange.wait(min(_ASK_S, left), connection.ended)
            ask = True
            match found:
                case ("answer", answer):
                    await self._post(connection, "done", call.id)
                    return ForwardedAnswer.from_wire(json.loads(answer))
                case ("unknown", _):
                    exchange.sent_to = None
                case ("restarted", _):
                    # Not taken; the directory will tell of the node's new connection. Only if nothing else was posted is
                    # it certain that it was the call which nobody took.
                    if exchange.posts == 1:
                        exchange.sent_to, exchange.posts = None, 0
                    await asyncio.sleep(0.1)
                case ("late", _):
                    # Of the first message it is the call itself that was not taken; later ones only asked for it.
                    made = "no" if exchange.posts == 1 else exchange.made
                    raise self._unreachable("its clock differs from this machine's by too much", made)
                case ("waiting", _):
                    ask = False
                case ("progress", told):
                    ask = False
                    exchange.tell(told)
                case _ if connection.ended.is_set():
                    raise ConnectionLost("the connection to NATS ended")
            gone_at = None if member.online else gone_at or loop.time()
            if gone_at is not None and loop.time() - gone_at > self._link.gone_s:
                raise self._unreachable("it is gone", exchange.made)

    async def _post(self, connection: FleetConnection, kind: str, id: str) -> None:
        """A word that need not arrive."""
        try:
            await connection.post(self._member.name, self._member.instance, kind, id)
        except ConnectionLost:
            pass

    async def open_stream(self, request: StreamRequest) -> Stream:
        await self._check_there()
        connection = self._link.connection
        if connection is None:
            raise self._unreachable(self._link.problem or "NATS cannot be reached", "no")
        id = secrets.token_hex(12)
        wire = {
            "kind": request.kind,
            "session": request.session,
            "query": dict(request.query),
            "caller": request.caller.to_wire(),
            "window": self._link.stream_bytes,
        }
        name, instance = self._member.name, self._member.instance

        async def send(kind: str, content: bytes) -> None:
            await connection.post(name, instance, kind, id, content)

        stream = CreditStream(send, self._link.stream_bytes, lambda why: self._unreachable(why, "no"))
        stop = connection.listen(id, stream.take)
        keeping = asyncio.ensure_future(self._keep(stream, connection, stop))
        stream.on_end = keeping.cancel
        try:
            await send("open", json.dumps(wire).encode())
            await stream.wait_opened()
        except BaseException as problem:
            await stream.aclose()
            if isinstance(problem, ConnectionLost):
                raise self._unreachable(str(problem), "no") from None
            raise
        return stream

    async def _keep(self, stream: CreditStream, connection: FleetConnection, stop: Callable[[], None]) -> None:
        """Let the node know that somebody still looks; end the stream with the connection, or when the node is gone."""
        hold = self._link.directory.hold()
        try:
            passed = 0.0
            while not stream.is_over:
                try:
                    async with asyncio.timeout(0.5):
                        await connection.ended.wait()
                    stream.cut("the connection to NATS ended")
                except TimeoutError:
                    pass
                if not self._member.online and self._link.directory.is_current:
                    stream.cut("the node has stopped beating")
                passed += 0.5
                if passed >= _STREAM_KEEP_S and not stream.is_over:
                    passed = 0.0
                    await stream.keep()
        except ConnectionLost:
            stream.cut("the connection to NATS ended")
        finally:
            hold()
            stop()

    async def _check_there(self) -> None:
        """Raises HostUnreachable at once for a node that is known to be away."""
        if not self._link.may_call:
            raise InvalidRequest(
                "This node serves the fleet and may not call others.",
                hint="Ask for credentials with another role: wsh fleet invite NAME --role agent.",
            )
        if not await self._link.directory.look() or not self._member.online:
            raise self._unreachable(self.state.problem or "NATS cannot be reached", "no")
        if self._member.facts.get("protocol") != PROTOCOL:
            raise self._unreachable(f"it runs wsh {self._member.facts.get('version')}, which speaks otherwise", "no")

    def _unreachable(self, why: str, made: Literal["no", "unknown"]) -> HostUnreachable:
        member = self._member
        return HostUnreachable(
            member.name,
            why,
            since=member.since if not member.online else time.time(),
            last_seen=member.last_seen,
            made=made,
        )


class _Exchange:
    """One call: where it was sent, and what came back."""

    def __init__(self, on_progress: ProgressListener | None) -> None:
        self._on_progress = on_progress
        self.sent_to: str | None = None
        """The start of the node that may have made it."""
        self.posts = 0
        self._came: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    @property
    def made(self) -> Literal["no", "unknown"]:
        return "no" if self.sent_to is None else "unknown"

    def take(self, kind: str, content: bytes) -> None:
        self._came.put_nowait((kind, content))

    def tell(self, progress: bytes) -> None:
        if self._on_progress is not None:
            self._on_progress(json.loads(progress))

    async def wait(self, timeout_s: float, ended: asyncio.Event) -> tuple[str, bytes] | None:
        """The next word, or None when there was none in time or the connection ended."""
        word = asyncio.ensure_future(self._came.get())
        end = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait({word, end}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return word.result() if word.done() else None
        finally:
            word.cancel()
            end.cancel()
