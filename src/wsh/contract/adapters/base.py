"""The interface that every runtime adapter has, and what they share: one bridge connection.

Errors are `ContractFault`s, already classified.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from wsh.approval.answer import Answer, AnswerRefused
from wsh.approval.card import Card
from wsh.approval.request import ApprovalRequest, WithdrawReason
from wsh.bridge.client import BridgeClient, Greeting, TerminalObserver
from wsh.bridge.fault import BridgeFault, Dropped, PeerError
from wsh.bridge.frame import MAX_FRAME_BYTES, Decision, Exit, OutputFrame, PageAnswer, PolicyFrame, RequestFrame
from wsh.contract.adapters.classify import classify
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.correlation import make_id
from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.contract")

AdapterType: TypeAlias = Literal["local", "bundled", "container_bridge", "server"]
State: TypeAlias = Literal["idle", "connecting", "ready", "dropped", "closed"]


@dataclass(frozen=True)
class ConnectInput:
    trace_id: str
    may_launch: bool = True
    spawn_timeout_s: float = 8.0


@dataclass(frozen=True)
class ConnectResult:
    adapter_type: AdapterType
    endpoint: str
    protocol_version: int
    runtime_session_id: str
    attempted: list[JsonObject] = field(default_factory=list)


@dataclass(frozen=True)
class HealthCheckResult:
    healthy: bool
    state: State
    endpoint: str | None
    silent_s: float | None


@dataclass(frozen=True)
class SendRequestResult:
    """`decision` is settled by the desktop's one answer."""

    request: ApprovalRequest
    decision: asyncio.Future[Decision]


class RuntimeAdapter(ABC):
    """connect, health_check, send_request, await_response, close, recover; plus read and terminate on what runs."""

    adapter_type: ClassVar[AdapterType]

    def __init__(
        self,
        runtime_session_id: str,
        *,
        name: str = "wsh",
        trail: str = "",
        trace: bool = False,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_policy: Callable[[PolicyFrame], None] | None = None,
    ) -> None:
        self.runtime_session_id = runtime_session_id
        self.name = name
        self.audit_name = trail
        self.trace = trace
        self.max_frame_bytes = max_frame_bytes
        self.on_policy = on_policy
        self.state: State = "idle"
        self.endpoint: str | None = None
        self._client: BridgeClient | None = None
        self._lost: dict[str, TerminalObserver] = {}

    @abstractmethod
    async def connect(self, asked: ConnectInput) -> ConnectResult:
        """Become ready, or raise and leave nothing behind. Ready already: returns at once."""

    async def health_check(self) -> HealthCheckResult:
        client = self._client
        if client is None or not client.is_open:
            return HealthCheckResult(False, "dropped" if self.state == "ready" else self.state, self.endpoint, None)
        silent_s = asyncio.get_running_loop().time() - client.stream.last_heard
        return HealthCheckResult(not client.stream.is_silent, self.state, self.endpoint, silent_s)

    def knows(self, capability: str) -> bool:
        """Whether the other end does: `answer` (a page may answer), `line` (it says what came of a typed line), `badges` (notes, badges
        and where an answer was given), `sandbox` (a command may be asked to leave it), `hidden` (its person is asked about hidden prompts),
        `resume` (terminals are heard again after a drop)."""
        return self._client is not None and self._client.knows(capability)

    def describe_peer(self) -> JsonObject:
        """Which desktop it is: the adapter, and the alias, host and port it was reached by."""
        facts: JsonObject = {"adapter": self.adapter_type}
        if self._client is not None:
            host, port = self._client.peer
            facts |= {"alias": host, "host": host, "port": port}
        return facts

    async def send_request(
        self,
        request: ApprovalRequest,
        ear: TerminalObserver | None = None,
        on_card: Callable[[Card], None] | None = None,
    ) -> SendRequestResult:
        if request.leaves is not None and not self.knows("sandbox"):
            raise ContractFault(
                "PM_TERM_GUI_UNAVAILABLE",
                "The desktop program is older than this server and cannot be asked to leave a sandbox.",
                next_recommended_action="Restart interactive-terminal, then send the request again.",
                **self.describe_peer(),
            )
        frame = RequestFrame.model_construct(**dict(request))
        if not self.knows("badges"):
            frame = frame.model_copy(update={"note": None, "badges": None})
        try:
            return SendRequestResult(request, self._ready_client().submit(frame, ear, on_card))
        except BridgeFault as fault:
            raise classify(fault, **self.describe_peer()) from None

    async def await_response(self, sent: SendRequestResult, timeout_s: float) -> Decision:
        """The one decision. Past `timeout_s` the request is withdrawn first, and what comes back says whether that was
        in time: a yes that won the race is a yes."""
        await asyncio.wait({sent.decision}, timeout=timeout_s)
        if not sent.decision.done():
            return await self.withdraw(sent, "timeout")
        return self._settled(sent)

    async def withdraw(self, sent: SendRequestResult, reason: WithdrawReason) -> Decision:
        """Take a request back and wait until the desktop has said what became of it, or the connection ends.

        That takes a while only where the program is being started already.
        """
        try:
            self._ready_client().withdraw(sent.request, reason)
        except BridgeFault as fault:
            raise classify(fault, request_state="unknown", **self.describe_peer()) from None
        await asyncio.wait({sent.decision})
        return self._settled(sent)

    def _settled(self, sent: SendRequestResult) -> Decision:
        try:
            return sent.decision.result()
        except BridgeFault as fault:
            raise classify(fault, request_state="unknown", **self.describe_peer()) from None

    async def answer(self, request: ApprovalRequest, answer: Answer, timeout_s: float = 10.0) -> None:
        """Hand on an answer that was given at the server. Returns if it counted; AnswerRefused says why it did not."""
        frame = PageAnswer(
            id=make_id("an"),
            request=request.id,
            trace_id=request.trace_id,
            binding=answer.digest,
            yes=answer.yes,
            scope=answer.scope,
            by=answer.by,
            reason=answer.reason,
            argv=list(answer.argv) if answer.argv is not None else None,
            rule=answer.rule,
            held=answer.held,
            headless=(answer.headless or None) if self.knows("badges") else None,
            where=answer.where if self.knows("badges") else None,
        )
        try:
            await self._ready_client().answer(frame, timeout_s)
        except PeerError as refused:
            raise AnswerRefused(refused.code, refused.message, **refused.details) from None
        except BridgeFault as fault:
            raise classify(fault, **self.describe_peer()) from None
        except TimeoutError:
            raise _silent("answer", timeout_s) from None

    async def read(self, terminal_id: str, cursor: int | None, trace_id: str, timeout_s: float = 10.0) -> OutputFrame:
        try:
            return await self._ready_client().read(terminal_id, cursor, trace_id, timeout_s=timeout_s)
        except BridgeFault as fault:
            raise classify(fault, **self.describe_peer()) from None
        except TimeoutError:
            raise _silent("read", timeout_s) from None

    async def terminate(self, terminal_id: str, trace_id: str, timeout_s: float = 15.0) -> Exit:
        try:
            return await self._ready_client().terminate(terminal_id, trace_id, timeout_s=timeout_s)
        except BridgeFault as fault:
            raise classify(fault, **self.describe_peer()) from None
        except TimeoutError:
            raise _silent("terminate", timeout_s) from None

    async def close(self) -> None:
        """End the connection. The desktop and what it runs go on. Idempotent."""
        self.state = "closed"
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def recover(self, asked: ConnectInput) -> ConnectResult:
        """After a drop: let go of the dead connection and make a new one."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
            self._lost |= client.lost
        self.state = "dropped"
        return await self.connect(asked)

    def forget(self, terminal_id: str) -> None:
        """Listen no more to a terminal that has ended."""
        if self._client is not None:
            self._client.forget(terminal_id)

    def _ready_client(self) -> BridgeClient:
        if self._client is None:
            raise classify(Dropped("The bridge is not connected."))
        return self._client

    def _greet(self, token: str, trace_id: str) -> Greeting:
        return Greeting(token, trace_id, self.runtime_session_id, self.name, self.audit_name)

    def _adopt(self, client: BridgeClient, endpoint: str, attempted: list[JsonObject]) -> ConnectResult:
        self._client, self.endpoint, self.state = client, endpoint, "ready"
        for terminal_id, ear in self._lost.items():
            if not ear.is_over:
                client.listen(terminal_id, ear)
        self._lost.clear()
        return ConnectResult(
            self.adapter_type, endpoint, client.ready.version, self.runtime_session_id, attempted=attempted
        )


def _silent(what: str, timeout_s: float) -> ContractFault:
    return ContractFault(
        "PM_TERM_TIMEOUT",
        f"The desktop did not answer a {what} within {timeout_s:g} s.",
        phase=what,
        timeout_ms=int(timeout_s * 1000),
    )
