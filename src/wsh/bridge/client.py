"""The server's end: one connection to a desktop, many requests on it at once.

Every request gets exactly one decision or one fault. A connection that ends fails everything that waits on it, and
never reconnects by itself: its owner decides that.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from wsh.approval.request import ApprovalRequest, WithdrawReason
from wsh.bridge.fault import (
    BridgeFault,
    Dropped,
    FrameTooLarge,
    HandshakeRefused,
    HandshakeTimeout,
    Malformed,
    PeerError,
    Unreachable,
)
from wsh.bridge.frame import (
    CAPABILITIES,
    CHUNK_BYTES,
    MAX_FRAME_BYTES,
    VERSIONS,
    Answered,
    AnyFrame,
    CardFrame,
    Decision,
    Error,
    Exit,
    Frame,
    Heartbeat,
    HelloFrame,
    LineFrame,
    OutputFrame,
    PageAnswer,
    PolicyFrame,
    Read,
    Ready,
    RequestFrame,
    Terminate,
    Withdraw,
)
from wsh.bridge.stream import FrameStream

log = logging.getLogger("wsh.bridge")

Reply: TypeAlias = OutputFrame | Exit | Answered


@dataclass(frozen=True)
class Greeting:
    """What the server says of itself in its hello."""

    token: str = field(repr=False)
    trace_id: str
    runtime_session_id: str
    name: str = "wsh"
    trail: str = ""
    """Names the audit log that decisions are recorded in."""
    versions: tuple[int, ...] = VERSIONS


class TerminalObserver(Protocol):
    """Hears of one terminal: its output as it comes, its end, or that the connection is gone."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to hear."""

    def take_output(self, frame: OutputFrame) -> None: ...

    def take_line(self, frame: LineFrame) -> None: ...

    def take_exit(self, frame: Exit) -> None: ...

    def lose(self) -> None: ...


class BridgeClient:
    """Connected from `connect` on. `on_policy` hears every policy frame."""

    def __init__(
        self, stream: FrameStream, ready: Ready, on_policy: Callable[[PolicyFrame], None] | None, host: str, port: int
    ) -> None:
        self.stream = stream
        self._peer = (host, port)
        self.ready = ready
        self.fault: BridgeFault | None = None
        self._on_policy = on_policy
        self._decisions: dict[str, asyncio.Future[Decision]] = {}
        self._replies: dict[str, asyncio.Future[Reply]] = {}
        self._ears: dict[str, TerminalObserver] = {}
        self._opening: dict[str, str] = {}
        """Terminal of each request that is not decided, if it opens one."""
        self.lost: dict[str, TerminalObserver] = {}
        """What listened to terminals that were open when the connection ended: for the next one."""
        self._cards: dict[str, Callable[[CardFrame], None]] = {}
        self._reader = asyncio.create_task(self._read_all(), name="bridge-client")

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        greeting: Greeting,
        *,
        connect_timeout_s: float = 3.0,
        handshake_timeout_s: float = 3.0,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        trace: bool = False,
        on_policy: Callable[[PolicyFrame], None] | None = None,
    ) -> BridgeClient:
        """Raises Unreachable, HandshakeTimeout or HandshakeRefused; nothing stays open then."""
        label = f"{host}:{port}"
        where: dict[str, object] = {"host": host, "port": port}
        try:
            async with asyncio.timeout(connect_timeout_s):
                reader, writer = await asyncio.open_connection(host, port, limit=max_frame_bytes)
        except TimeoutError:
            raise Unreachable(f"{label} did not answer within {connect_timeout_s:g} s.", **where) from None
        except (OSError, UnicodeError) as problem:
            raise Unreachable(f"{label} cannot be reached: {_plainly(problem)}.", **where) from None
        stream = FrameStream(reader, writer, max_frame_bytes=max_frame_bytes, trace=trace, label=label)
        try:
            ready = await _shake_hands(stream, greeting, handshake_timeout_s, where)
        except BaseException:
            stream.abort()
            await stream.aclose()
            raise
        client = cls(stream, ready, on_policy, host, port)
        stream.start_heartbeats(ready.heartbeat_ms / 1000, stream.abort)
        return client

    @property
    def is_open(self) -> bool:
        return self.fault is None

    def knows(self, capability: str) -> bool:
        """Whether this desktop said so of itself: `answer` if it lets a page answer, else one of CAPABILITIES."""
        return capability in self.ready.capabilities

    @property
    def peer(self) -> tuple[str, int]:
        """Host and port of the desktop, as they were given to `connect`."""
        return self._peer

    def submit(
        self,
        request: RequestFrame,
        ear: TerminalObserver | None = None,
        on_card: Callable[[CardFrame], None] | None = None,
    ) -> asyncio.Future[Decision]:
        """Send a request. The future gets its one decision, PeerError or Dropped. Output goes to `ear`.

        `on_card` hears what the person is shown, if they are asked at all.
        """
        self._check()
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        self._decisions[request.id] = future
        if ear is not None:
            self._ears[request.terminal_id] = ear
            self._opening[request.id] = request.terminal_id
        if on_card is not None:
            self._cards[request.id] = on_card
        try:
            self.stream.send(request)
        except BaseException:
            del self._decisions[request.id]
            self._stop_opening(request.id)
            self._cards.pop(request.id, None)
            raise
        return future

    def listen(self, terminal_id: str, ear: TerminalObserver) -> None:
        """Hear of a terminal that was opened over an earlier connection. Nothing is missed if this follows `connect` at once."""
        self._ears[terminal_id] = ear

    def forget(self, terminal_id: str) -> None:
        """Undo `listen`."""
        self._ears.pop(terminal_id, None)

    def _stop_opening(self, request_id: str) -> None:
        """A request that was to open a terminal did not."""
        terminal_id = self._opening.pop(request_id, None)
        if terminal_id is not None:
            self._ears.pop(terminal_id, None)

    def withdraw(self, request: ApprovalRequest, reason: WithdrawReason) -> None:
        """Ask to take a request back; its decision says whether that was in time."""
        self._check()
        self.stream.send(Withdraw(id=request.id, trace_id=request.trace_id, reason=reason))

    async def read(
        self, terminal_id: str, cursor: int | None, trace_id: str, max_bytes: int = CHUNK_BYTES, timeout_s: float = 10.0
    ) -> OutputFrame:
        frame = Read(id=_fresh_id(), trace_id=trace_id, terminal_id=terminal_id, cursor=cursor, max_bytes=max_bytes)
        reply = await self._ask(frame.id, frame, timeout_s)
        if not isinstance(reply, OutputFrame):
            raise Malformed("The desktop answered a read with something else.")
        return reply

    async def terminate(self, terminal_id: str, trace_id: str, timeout_s: float = 15.0) -> Exit:
        frame = Terminate(id=_fresh_id(), trace_id=trace_id, terminal_id=terminal_id)
        reply = await self._ask(frame.id, frame, timeout_s)
        if not isinstance(reply, Exit):
            raise Malformed("The desktop answered a terminate with something else.")
        return reply

    async def answer(self, answer: PageAnswer, timeout_s: float = 10.0) -> None:
        """Hand a person's answer on. Returns if it counted; PeerError says why it did not."""
        reply = await self._ask(answer.id, answer, timeout_s)
        if not isinstance(reply, Answered):
            raise Malformed("The desktop answered an answer with something else.")

    async def _ask(self, key: str, frame: Frame, timeout_s: float) -> Reply:
        """Raises TimeoutError when the desktop lives but does not answer."""
        self._check()
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        self._replies[key] = future
        try:
            self.stream.send(frame)
            async with asyncio.timeout(timeout_s):
                return await future
        finally:
            self._replies.pop(key, None)

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault

    async def aclose(self) -> None:
        """Close. What waits fails as dropped."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._fail(Dropped("The connection was closed by this server."))
        await self.stream.aclose()

    async def _read_all(self) -> None:
        fault: BridgeFault = Dropped("The connection ended.")
        try:
            while True:
                self._take(await self.stream.read())
        except (Malformed, FrameTooLarge) as bad:
            # the frame may have been somebody's decision: say so, and let nobody wait for it
            code = "frame_too_large" if isinstance(bad, FrameTooLarge) else "malformed"
            fault = Dropped(f"The desktop sent a frame that cannot be read: {bad.message}", reason=code)
            await self.stream.refuse(code, bad.message)
        except BridgeFault as problem:
            fault = problem
        except Exception:
            log.exception("bridge %s: reading failed", self.stream.label)
            fault = Dropped("Reading from the bridge failed.")
        finally:
            self._fail(fault)
            self.stream.abort()

    def _fail(self, fault: BridgeFault) -> None:
        if self.fault is None:
            host, port = self._peer
            fault.details = {"host": host, "port": port} | fault.details
            self.fault = fault
        for decision in self._decisions.values():
            if not decision.done():
                decision.set_exception(self.fault)
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(self.fault)
        self._decisions.clear()
        self._replies.clear()
        self._cards.clear()
        for request_id in list(self._opening):
            if (ear := self._ears.get(self._opening[request_id])) is not None:
                ear.lose()
            self._stop_opening(request_id)
        self.lost |= self._ears
        for ear in self._ears.values():
            ear.lose()
        self._ears.clear()

    def _take(self, frame: AnyFrame) -> None:
        match frame:
            case Decision():
                decided = self._decisions.pop(frame.id, None)
                self._cards.pop(frame.id, None)
                if frame.outcome == "approved":
                    self._opening.pop(frame.id, None)
                else:
                    self._stop_opening(frame.id)
                if decided is not None and not decided.done():
                    decided.set_result(frame)
            case CardFrame():
                if (hear := self._cards.get(frame.id)) is not None:
                    hear(frame)
            case Answered():
                reply = self._replies.pop(frame.reply_to, None)
                if reply is not None and not reply.done():
                    reply.set_result(frame)
            case OutputFrame() | Exit():
                self._take_terminal(frame)
            case LineFrame():
                if (ear := self._ears.get(frame.terminal_id)) is not None:
                    ear.take_line(frame)
            case PolicyFrame():
                if self._on_policy is not None:
                    self._on_policy(frame)
            case Heartbeat():
                pass
            case Error():
                self._take_error(frame)
            case _:
                message = f"A {frame.type} frame is not expected here."
                self.stream.send(Error(code="unexpected_frame", message=message))

    def _take_terminal(self, frame: OutputFrame | Exit) -> None:
        ear = self._ears.get(frame.terminal_id)
        if frame.reply_to is not None:
            reply = self._replies.pop(frame.reply_to, None)
            if reply is not None and not reply.done():
                reply.set_result(frame)
        if ear is None or frame.reply_to is not None:
            return  # a reply is for the call that asked; the stream itself is told separately
        if isinstance(frame, Exit):
            ear.take_exit(frame)
            del self._ears[frame.terminal_id]
        else:
            ear.take_output(frame)

    def _take_error(self, frame: Error) -> None:
        if frame.reply_to is None:
            # nobody knows which of our frames it means; waiting on would be waiting for ever
            raise Dropped(f"The desktop reports {frame.code}: {frame.message}", reason=frame.code)
        fault = PeerError(frame.code, frame.message, **frame.details)
        decided = self._decisions.pop(frame.reply_to, None)
        self._cards.pop(frame.reply_to, None)
        self._stop_opening(frame.reply_to)
        if decided is not None and not decided.done():
            decided.set_exception(fault)
        reply = self._replies.pop(frame.reply_to, None)
        if reply is not None and not reply.done():
            reply.set_exception(fault)


async def _shake_hands(stream: FrameStream, greeting: Greeting, timeout_s: float, where: dict[str, object]) -> Ready:
    hello = HelloFrame(
        versions=list(greeting.versions),
        capabilities=[*CAPABILITIES, f"trail:{greeting.trail}"] if greeting.trail else CAPABILITIES,
        token=greeting.token,
        trace_id=greeting.trace_id,
        runtime_session_id=greeting.runtime_session_id,
        name=greeting.name,
    )
    try:
        stream.send(hello)
        async with asyncio.timeout(timeout_s):
            answer = await stream.read()
    except TimeoutError:
        raise HandshakeTimeout(f"{stream.label} accepted and then said nothing for {timeout_s:g} s.", **where) from None
    except Dropped as end:
        raise HandshakeRefused(
            f"{stream.label} closed the connection during the handshake: {end.message}", reason="closed", **where
        ) from None
    except (Malformed, FrameTooLarge):
        raise HandshakeRefused(
            f"{stream.label} does not speak this protocol.", reason="not_a_bridge", **where
        ) from None
    if isinstance(answer, Error):
        raise HandshakeRefused(answer.message, reason=answer.code, **where, **_safe(answer.details))
    if not isinstance(answer, Ready):
        raise HandshakeRefused(f"{stream.label} does not speak this protocol.", reason="not_a_bridge", **where)
    if answer.version not in greeting.versions:
        raise HandshakeRefused(
            f"{stream.label} chose protocol version {answer.version}.",
            reason="unsupported_version",
            supported=list(greeting.versions),
            **where,
        )
    if answer.trace_id != greeting.trace_id or answer.runtime_session_id != greeting.runtime_session_id:
        raise HandshakeRefused(f"{stream.label} answered another hello than ours.", reason="not_a_bridge", **where)
    stream.max_frame_bytes = min(stream.max_frame_bytes, answer.max_frame_bytes)
    return answer


def _safe(details: dict[str, object]) -> dict[str, object]:
    return {key: details[key] for key in ("supported", "given", "max_frame_bytes") if key in details}


def _plainly(problem: Exception) -> str:
    return problem.strerror or str(problem) if isinstance(problem, OSError) else "not a host name"


def _retrieve(future: asyncio.Future[Decision] | asyncio.Future[Reply]) -> None:
    """Mark the exception as seen: a caller that went away must not leave a warning behind."""
    if not future.cancelled():
        future.exception()


def _fresh_id() -> str:
    return uuid.uuid4().hex
