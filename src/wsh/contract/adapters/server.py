"""The approval queue inside the server, as an adapter: no bridge, no window, the same rules.

Commands run in ordinary sessions of the server. Nothing here is ever launched, dropped or reconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from wsh.approval.answer import Answer, take_answer, too_late
from wsh.approval.approver import TypedLineOutcome
from wsh.approval.card import Card
from wsh.approval.ledger import Ledger
from wsh.approval.queue import ApprovalQueue, Rejected, Settled, TerminalState
from wsh.approval.request import ApprovalRequest, WithdrawReason
from wsh.bridge.client import TerminalObserver
from wsh.bridge.decision import make_decision, make_line
from wsh.bridge.fault import PeerError
from wsh.bridge.frame import Decision, Exit, OutputFrame
from wsh.contract.adapters.base import (
    AdapterType,
    ConnectInput,
    ConnectResult,
    HealthCheckResult,
    RuntimeAdapter,
    SendRequestResult,
)
from wsh.contract.adapters.classify import classify
from wsh.contract.adapters.server_approver import ServerApprover
from wsh.contract.reply.fault import ContractFault
from wsh.wire.json.object import JsonObject

_END_S = 10.0
KEPT_ENDED = 256


class BytesEar(TerminalObserver, Protocol):
    """An ear in the same process, which takes bytes as they are."""

    def take_bytes(self, offset: int, data: bytes) -> None: ...


class ServerTerminal:
    """A session that an approval opened. What it prints before its approval was told waits for that."""

    def __init__(self, request: ApprovalRequest, ear: BytesEar | None) -> None:
        self.request = request
        self.running = True
        self.exit_code: int | None = None
        self.terminated = False
        self.offset = 0
        self.ended = asyncio.Event()
        self._ear = ear
        self._early: list[Callable[[], None]] | None = []

    def output(self, data: bytes) -> None:
        at = self.offset
        self.offset += len(data)
        if (ear := self._ear) is not None:
            self._tell(lambda: ear.take_bytes(at, data))

    def exited(self, exit_code: int | None) -> None:
        if self.running:
            self.running, self.exit_code = False, exit_code
            self.ended.set()
            self._tell(self._tell_exit)

    def begin(self) -> None:
        early, self._early = self._early, None
        for tell in early or ():
            tell()

    def _tell(self, tell: Callable[[], None]) -> None:
        if self._early is None:
            tell()
        else:
            self._early.append(tell)

    def _tell_exit(self) -> None:
        if self._ear is not None:
            self._ear.take_exit(self.describe_exit())

    def describe_exit(self, survivors: list[int] | None = None) -> Exit:
        return Exit(
            terminal_id=self.request.terminal_id,
            trace_id=self.request.trace_id,
            exit_code=self.exit_code,
            terminated=self.terminated,
            survivors=survivors or [],
        )


class ServerAdapter(RuntimeAdapter):
    """Also the asking side of its own queue."""

    adapter_type: AdapterType = "server"  # type: ignore[misc]  # a class attribute, typed more narrowly

    def __init__(
        self,
        end: ServerApprover,
        runtime_session_id: str,
        max_pending: int = 256,
        find_session_name: Callable[[str], str | None] = lambda terminal_id: None,
    ) -> None:
        super().__init__(runtime_session_id, name="this server")
        self.end = end
        self.find_session_name = find_session_name
        self.state = "ready"
        self.queue = ApprovalQueue(end, Ledger(max_pending), self)
        self.session = runtime_session_id
        self.trail = ""
        self._decisions: dict[str, asyncio.Future[Decision]] = {}
        self._cards: dict[str, Callable[[Card], None]] = {}
        self._ears: dict[str, BytesEar] = {}
        self._terminals: dict[str, ServerTerminal] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # the adapter

    async def connect(self, asked: ConnectInput) -> ConnectResult:
        return ConnectResult(self.adapter_type, "server", 1, self.runtime_session_id)

    async def health_check(self) -> HealthCheckResult:
        return HealthCheckResult(True, self.state, "server", 0.0)

    async def recover(self, asked: ConnectInput) -> ConnectResult:
        return await self.connect(asked)

    def knows(self, capability: str) -> bool:
        return True

    def describe_peer(self) -> JsonObject:
        return {"adapter": self.adapter_type}

    async def send_request(
        self,
        request: ApprovalRequest,
        ear: TerminalObserver | None = None,
        on_card: Callable[[Card], None] | None = None,
    ) -> SendRequestResult:
        if self.state == "closed":
            raise ContractFault("PM_TERM_DISCONNECTED", "The server ended before the request was shown.")
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._decisions[request.id] = future
        if on_card is not None:
            self._cards[request.id] = on_card
        if ear is not None:
            self._ears[request.terminal_id] = ear  # type: ignore[assignment]  # those of this process take bytes
        try:
            self.queue.admit(request)
        except Rejected as rejected:
            self._forget(request)
            self._ears.pop(request.terminal_id, None)
            raise classify(PeerError(rejected.code, rejected.message, **rejected.details)) from None
        return SendRequestResult(request, future)

    async def withdraw(self, sent: SendRequestResult, reason: WithdrawReason) -> Decision:
        if not sent.decision.done():
            self.queue.withdraw(sent.request.id, reason)
        return await asyncio.shield(sent.decision)

    async def answer(self, request: ApprovalRequest, answer: Answer, timeout_s: float = 10.0) -> None:
        pending = self.queue.find_card(request.id)
        if pending is None:
            raise too_late(request.id, self.queue.find_state(request.id))
        take_answer(pending, answer, self.end)

    async def read(self, terminal_id: str, cursor: int | None, trace_id: str, timeout_s: float = 10.0) -> OutputFrame:
        """Everything was told already as it came."""
        terminal = self._find(terminal_id)
        return OutputFrame(
            terminal_id=terminal_id,
            trace_id=trace_id,
            offset=terminal.offset,
            data="",
            running=terminal.running,
            exit_code=terminal.exit_code,
        )

    async def terminate(self, terminal_id: str, trace_id: str, timeout_s: float = 15.0) -> Exit:
        terminal = self._find(terminal_id)
        survivors: list[int] = []
        if terminal.running:
            terminal.terminated = True
            survivors = list(await self.end.terminate(terminal_id))
            try:
                async with asyncio.timeout(_END_S):
                    await terminal.ended.wait()
            except TimeoutError:
                raise ContractFault("PM_TERM_INTERNAL", "The session could not be ended.") from None
        return terminal.describe_exit(survivors)

    async def close(self) -> None:
        """Withdraws pending requests; what is being started is started first, and said to be. Programs that run belong to the server."""
        self.state = "closed"
        self.queue.withdraw_all()
        tasks = list(self._tasks)
        for task in tasks:
            if task.get_name() != "approval-start":  # past its point of no return it is finished, not torn
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for future in self._decisions.values():
            future.cancel()

    def _find(self, terminal_id: str) -> ServerTerminal:
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            raise classify(PeerError("unknown_terminal", f"There is no terminal {terminal_id!r}."))
        return terminal

    # the asking side

    def look_up(self, terminal_id: str) -> TerminalState:
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            return "unknown"
        return "running" if terminal.running else "ended"

    def open_terminal(self, request: ApprovalRequest) -> ServerTerminal:
        terminal = ServerTerminal(request, self._ears.get(request.terminal_id))
        self._terminals[request.terminal_id] = terminal
        ended = [id for id, known in self._terminals.items() if not known.running]
        for id in ended[: max(0, len(ended) - KEPT_ENDED)]:
            del self._terminals[id]
            self._ears.pop(id, None)
        return terminal

    def adopt(self, request: ApprovalRequest, ear: BytesEar, sid: str) -> bool:
        """Go on with a program that an earlier server started. False if its session is gone."""
        self._ears[request.terminal_id] = ear
        terminal = self.open_terminal(request)
        if not self.end.runs.adopt(request.terminal_id, sid, terminal):
            self.forget_terminal(request)
            return False
        terminal.begin()
        return True

    def forget_terminal(self, request: ApprovalRequest) -> None:
        self._terminals.pop(request.terminal_id, None)
        self._ears.pop(request.terminal_id, None)

    def take_card(self, card: Card) -> None:
        if (hear := self._cards.get(card.id)) is not None:
            hear(card)

    def take_end(self, request: ApprovalRequest, settled: Settled) -> None:
        future = self._forget(request)
        if settled.outcome != "approved" and request.kind != "send":
            self._ears.pop(request.terminal_id, None)
        if future is not None and not future.done():
            future.set_result(make_decision(request, settled))

    def take_start(self, request: ApprovalRequest) -> None:
        self._terminals[request.terminal_id].begin()

    def take_line(self, request: ApprovalRequest, line: TypedLineOutcome) -> None:
        ear, terminal = self._ears.get(request.terminal_id), self._terminals.get(request.terminal_id)
        if ear is not None and terminal is not None:
            ear.take_line(make_line(request, line, terminal.offset))

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _forget(self, request: ApprovalRequest) -> asyncio.Future[Decision] | None:
        self._cards.pop(request.id, None)
        return self._decisions.pop(request.id, None)
