"""A request's life, apart from the calls that wait for it: sent, perhaps answered, perhaps withdrawn, settled once.

A call that waits may end long before. What became of the request is kept with its identity, where later calls find it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wsh.approval.request import ApprovalRequest, WithdrawReason
from wsh.bridge.frame import Decision
from wsh.contract.adapters.base import RuntimeAdapter, SendRequestResult
from wsh.contract.adapters.classify import refusal
from wsh.contract.ask.kept import KeptRequest, RequestFolder, describe_caller
from wsh.contract.ask.pending import PendingRequests
from wsh.contract.cleanup import finish_cleanup
from wsh.contract.identity import Identity
from wsh.contract.output.observer import OutputObserver
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.correlation import Correlated
from wsh.policy import Verdict
from wsh.wire.caller import TAKEN_BACK, Caller
from wsh.wire.system.moment import read_moment

log = logging.getLogger("wsh.contract")

LASTING = ("stdio:", "mcp:")
"""Connections whose end is their caller's going away; a POST that ends says nothing of its caller."""


@dataclass(eq=False)
class AskedRequest:
    """`start` it once; `task` ends when it is settled, and never raises."""

    request: ApprovalRequest
    adapter: RuntimeAdapter
    identity: Identity
    ear: OutputObserver | None
    """For a request that opens a terminal: what hears it."""
    verdict: Verdict
    caller: Caller
    ids: Correlated
    keep: bool
    waiting: PendingRequests
    on_end: Callable[[AskedRequest], None]
    decision: Decision | None = None
    fault: ContractFault | None = None
    """Why it did not run."""
    withdrawn: WithdrawReason | None = None
    folder: RequestFolder | None = None
    """Where it is kept for a successor of this server; None if it ends with this one."""
    task: asyncio.Task[None] = field(init=False)
    _sent: asyncio.Future[SendRequestResult] = field(init=False)

    async def start(self) -> None:
        """Returns when the disk has it, if it is kept, and it can be found among those that wait."""
        since = time.time()
        if self.folder is not None:
            try:
                await self._keep(self.folder, since)
            except OSError as problem:
                log.warning("a request would not outlive this server: %s (trace %s)", problem, self.ids.trace_id)
                self.folder = None
        self.go_on(since)

    def go_on(self, since: float) -> None:
        """Let it live; also one that an earlier server left."""
        self._sent = asyncio.get_running_loop().create_future()
        self.waiting.enter(self.request, self.adapter, self.identity, since)
        self.task = asyncio.create_task(self._live(), name=f"approval {self.request.id}")

    async def _keep(self, folder: RequestFolder, since: float) -> None:
        now = read_moment()
        kept = KeptRequest(
            state="waiting",
            request=self.request,
            caller=describe_caller(self.caller),
            keep=self.keep,
            since=since,
            made=(now.wall, now.boot, now.up),
            workspace_id=self.identity.workspace_id,
            surface=self.identity.caller_surface,
            leaving=self.identity.facts.get("leaving"),
        )
        try:
            await folder.put(kept)
        except asyncio.CancelledError:
            await finish_cleanup(folder.drop(self.request.id))
            raise

    async def begin(self, sid: str) -> None:
        """Before the program runs in the session `sid`. Raises OSError, and then it must not run."""
        if self.folder is not None:
            await self.folder.change(self.request.id, state="starting", sid=sid)

    async def keep_end(self) -> None:
        """What became of it is on disk when this returns."""
        if self.folder is not None:
            try:
                await self.folder.change(
                    self.request.id, state="settled", decision=self.decision, outcome=self.outcome, ended=time.time()
                )
            except OSError as problem:
                log.warning("what became of a request is not kept: %s (trace %s)", problem, self.ids.trace_id)

    @property
    def is_pending(self) -> bool:
        return not self.task.done()

    @property
    def is_approved(self) -> bool:
        return self.decision is not None and self.decision.outcome == "approved"

    def belongs_to(self, connection: str) -> bool:
        return not self.keep and self.caller.id == connection

    def ends_with_call(self, cancelled: asyncio.CancelledError) -> bool:
        """Whether the end of the call that made it takes it back: on request always, else with a connection that lasts."""
        if TAKEN_BACK in cancelled.args:
            return True
        return not self.keep and self.caller.connection.startswith(LASTING)

    async def withdraw(self, reason: WithdrawReason) -> None:
        """Take it back and wait until that is settled. A yes that came first stays a yes."""
        if self.is_pending:
            self.withdrawn = reason
            try:
                await self.adapter.withdraw(await asyncio.shield(self._sent), reason)
            except ContractFault as fault:
                log.warning("a request could not be taken back: %s (trace %s)", fault.message, self.ids.trace_id)
        await asyncio.wait({self.task})

    async def _live(self) -> None:
        try:
            sent = await self.adapter.send_request(self.request, self.ear, self.waiting.show)
            self._sent.set_result(sent)
            self.decision = await self.adapter.await_response(sent, self.request.deadline_ms / 1000)
        except ContractFault as fault:
            self.fault = fault
        except asyncio.CancelledError:
            self.fault = ContractFault("PM_TERM_DISCONNECTED", "The server ended before the request was answered.")
        except Exception:
            log.exception("a request was lost, trace %s", self.ids.trace_id)
            self.fault = ContractFault("PM_TERM_INTERNAL", "The request failed inside the server.")
        finally:
            if not self._sent.done():
                self._sent.set_exception(self.fault or ContractFault("PM_TERM_INTERNAL", "It was never sent."))
                self._sent.exception()  # looked at, so that nobody warns about it
            if self.decision is not None and self.decision.outcome != "approved":
                self.fault = refusal(self.decision, self.request.deadline_ms)
            await finish_cleanup(self.keep_end())
            self.waiting.leave(self.request, self.outcome, self.decision)
            self.on_end(self)

    @property
    def outcome(self) -> str:
        """What became of it, in one word; a code where nothing was decided."""
        if self.decision is not None:
            expired = self.decision.outcome == "withdrawn" and self.withdrawn in (None, "timeout")
            return "expired" if expired else self.decision.outcome
        return self.fault.code if self.fault is not None else "waiting"
