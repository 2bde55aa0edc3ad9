"""What other nodes ask of this one: sealed calls are checked and made once, streams are opened to this server's own sockets.

A caller has the role that the certificate of the node it came through allows, whatever the message says, and never more than it had there.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wsh.host.carrier import ForwardedAnswer, ForwardedCall, ForwardedCaller, Stream, StreamKind, StreamRequest
from wsh.host.ending import end_tasks
from wsh.host.fleet.connection import ConnectionLost, FleetConnection
from wsh.host.fleet.credential import NodeCertificate
from wsh.host.fleet.seal import PieceBox, SealBroken, SealCheck, Sealed
from wsh.host.fleet.stream import CreditStream
from wsh.host.receive import Receiver
from wsh.wire.error import HostUnreachable, InternalError, InvalidRequest, LimitReached, Refused, WshError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from wsh.wire.json.object import JsonObject
    from wsh.wire.token_file import Role

log = logging.getLogger("wsh.fleet")

_SILENT_S = 60.0
"""A stream whose node has not been heard of for so long is closed."""
_KINDS: dict[str, StreamKind] = {"view": "view", "raw": "raw", "json": "json"}


@dataclass
class _OpenStream:
    stream: CreditStream
    sender: str
    task: asyncio.Task[None] | None = None
    heard: float = 0.0


class NodeEnd:
    """The far end of other nodes' carriers, on one connection. The receiver outlives it: a call is made once per start."""

    def __init__(
        self,
        connection: FleetConnection,
        receiver: Receiver,
        open_stream: Callable[[StreamRequest], Awaitable[Stream]],
        *,
        max_skew_s: float,
        max_call_bytes: int,
        max_streams: int,
    ) -> None:
        self._connection = connection
        self._receiver = receiver
        self._open_stream = open_stream
        self._check = SealCheck(connection.credential, connection.sealer.instance, max_skew_s)
        self._pieces = PieceBox(max_call_bytes)
        self._max_streams = max_streams
        self._streams: dict[str, _OpenStream] = {}
        self._answers: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        await self._connection.client.subscribe(self._connection.names.call(self._connection.node), cb=self._on_message)

    async def aclose(self) -> None:
        """Ends streams; calls go on and are asked for again."""
        for one in self._streams.values():
            one.stream.cut("the connection to NATS ended")
        await end_tasks([*self._tasks, *self._answers.values()])

    async def _on_message(self, message: Msg) -> None:
        connection = self._connection
        try:
            sealed = self._check.open(message.data)
        except SealBroken as broken:
            if broken.fault in ("restarted", "late") and message.reply.startswith(f"{connection.names.prefix}.inbox."):
                await self._reply(message.reply, broken.fault)
            else:
                log.warning("a message to this node was refused: %s", broken)
            return
        if message.reply != f"{connection.names.inbox(sealed.sender.name)}.x.{sealed.id}":
            log.warning("a message of the node %s wants its answer sent elsewhere; refused", sealed.sender.name)
            return
        try:
            whole = self._pieces.add(sealed.sender.name, f"{sealed.id}:{sealed.kind}", sealed.piece, sealed.content)
            if whole is not None:
                await self._take(replace(sealed, content=whole), message.reply)
        except WshError as problem:
            answer = ForwardedAnswer.of_error(problem)
            await self._reply(message.reply, "answer", json.dumps(answer.to_wire()).encode())

    async def _take(self, sealed: Sealed, reply: str) -> None:
        # Ids are the sender's own: no node can reach another's exchange.
        key = f"{sealed.sender.name}:{sealed.id}"
        match sealed.kind:
            case "call":
                self._take_call(sealed, key, reply)
            case "ask":
                if key in self._answers:
                    await self._reply(reply, "waiting")
                elif key in self._receiver:
                    self._answers[key] = self._start_answer(key, None, reply)
                else:
                    await self._reply(reply, "unknown")
            case "done" | "cancel":
                self._forget(key)
            case "open":
                self._take_stream(sealed, key, reply)
            case _:
                await self._take_stream_word(sealed, key, reply)

    def _take_call(self, sealed: Sealed, key: str, reply: str) -> None:
        call = ForwardedCall.from_wire(_read_json(sealed.content))
        if call.id != sealed.id:
            raise InvalidRequest("The call has another id than its message.")
        if key in self._answers:
            return
        made = replace(call, id=key, caller=admit(call.caller, sealed.sender))
        self._answers[key] = self._start_answer(key, made, reply)

    def _start_answer(self, key: str, call: ForwardedCall | None, reply: str) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._answer(key, call, reply))
        task.add_done_callback(lambda _: self._answers.pop(key, None))
        return task

    async def _answer(self, key: str, call: ForwardedCall | None, reply: str) -> None:
        def tell(told: JsonObject) -> None:
            task = asyncio.ensure_future(self._reply(reply, "progress", json.dumps(told).encode()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        waiting = self._receiver.answer(call, tell) if call is not None else self._receiver.answer_again(key)
        answer = await waiting
        try:
            content = json.dumps(answer.to_wire(), separators=(",", ":")).encode()
        except (TypeError, ValueError):
            log.exception("the answer to a call of another node is no JSON")
            content = json.dumps(ForwardedAnswer.of_error(InternalError()).to_wire()).encode()
        await self._reply(reply, "answer", content)

    def _forget(self, key: str) -> None:
        task = self._answers.pop(key, None)
        if task is not None:
            task.cancel()
        self._receiver.cancel(key)

    def _take_stream(self, sealed: Sealed, key: str, reply: str) -> None:
        given = _read_json(sealed.content)
        kind = _KINDS.get(str(given.get("kind")))
        query, window = given.get("query"), given.get("window")
        if kind is None or not isinstance(query, dict) or not isinstance(window, int):
            raise InvalidRequest("The stream that is asked for has no kind, query or window.")
        if key in self._streams:
            return
        caller = admit(ForwardedCaller.from_wire(given.get("caller")), sealed.sender)
        request = StreamRequest(kind, str(given.get("session")), {str(k): str(v) for k, v in query.items()}, caller)

        async def send(kind: str, content: bytes) -> None:
            await self._connection.reply(reply, kind, content)

        stream = CreditStream(send, min(window, 16 * 1024 * 1024), lambda why: HostUnreachable(sealed.sender.name, why))
        one = self._streams[key] = _OpenStream(stream, sealed.sender.name, heard=asyncio.get_running_loop().time())
        one.task = asyncio.ensure_future(self._serve_stream(request, one, key))
        self._tasks.add(one.task)
        one.task.add_done_callback(self._tasks.discard)

    async def _serve_stream(self, request: StreamRequest, one: _OpenStream, key: str) -> None:
        stream = one.stream
        try:
            if len(self._streams) > self._max_streams:
                raise LimitReached("streams of other nodes", self._max_streams, "fleet.max_streams")
            local = await self._open_stream(request)
        except WshError as problem:
            self._streams.pop(key, None)
            await stream.fail(problem.to_wire())
            return
        try:
            await stream.open()
            await _join(stream, local, lambda: asyncio.get_running_loop().time() - one.heard > _SILENT_S)
        except HostUnreachable:
            pass
        finally:
            self._streams.pop(key, None)
            await local.aclose()

    async def _take_stream_word(self, sealed: Sealed, key: str, reply: str) -> None:
        one = self._streams.get(key)
        if one is None:
            if sealed.kind != "closed":
                await self._reply(reply, "unknown")
            return
        one.heard = asyncio.get_running_loop().time()
        one.stream.take(sealed.kind, sealed.content)

    async def _reply(self, subject: str, kind: str, content: bytes = b"") -> None:
        try:
            await self._connection.reply(subject, kind, content)
        except ConnectionLost:
            pass


def admit(caller: ForwardedCaller, sender: NodeCertificate) -> ForwardedCaller:
    """The caller as this node takes them: from the node that signed, with no more than its certificate allows."""
    if sender.role == "serve":
        raise Refused(f"The node {sender.name!r} serves the fleet and may not call.")
    role: Role = "owner" if caller.role == "owner" and sender.role == "owner" else "agent"
    return replace(caller, role=role, host=sender.name)


def _read_json(content: bytes) -> dict[str, object]:
    try:
        given = json.loads(content)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidRequest("The message holds no JSON object.")
    return given


async def _join(far: CreditStream, local: Stream, is_silent: Callable[[], bool]) -> None:
    """Carry messages both ways until one of the ends is closed."""

    async def bring() -> None:
        while (message := await far.receive()) is not None:
            try:
                await local.send(message)
            except HostUnreachable:
                # This end is over: `fetch` still brings what was said last, and why it closed.
                await asyncio.wait({fetching})
                return

    async def fetch() -> None:
        try:
            while (message := await local.receive()) is not None:
                await far.send(message)
        except HostUnreachable as problem:
            if not far.is_over:
                await far.fail(problem.to_wire())
        else:
            await far.close(*local.closed)

    async def watch() -> None:
        while True:
            await asyncio.sleep(_SILENT_S / 4)
            if is_silent():
                return

    fetching = asyncio.ensure_future(fetch())
    tasks = [fetching, asyncio.ensure_future(bring()), asyncio.ensure_future(watch())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for result in await end_tasks(tasks):
            if isinstance(result, Exception) and not isinstance(result, HostUnreachable | ConnectionLost):
                log.warning("a stream of another node ended", exc_info=result)
