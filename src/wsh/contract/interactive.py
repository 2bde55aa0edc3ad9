"""The interactive route: ask the policy, then the person, then follow what runs.

Nothing here runs a command; the place that was chosen does, after a yes that was bound to exactly what it showed: the window if one is
connected, else the queue in this server if the user turned that on. A request lives apart from the call that made it (`asked`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from wsh.approval.escape import escape_argument
from wsh.approval.judgement import make_badges
from wsh.approval.request import ApprovalRequest, Asker, Place, RequestKind
from wsh.bridge.frame import Decision
from wsh.contract.adapters.base import RuntimeAdapter
from wsh.contract.adapters.inputs import read_request_timeout_ms
from wsh.contract.adapters.mode import resolve_mode
from wsh.contract.adapters.pool import AdapterPool
from wsh.contract.adapters.server import ServerAdapter
from wsh.contract.ask.asked import AskedRequest
from wsh.contract.ask.kept import RequestFolder
from wsh.contract.ask.pending import PendingRequest, PendingRequests
from wsh.contract.cleanup import finish_cleanup
from wsh.contract.gate import Gate, blocked, headless_verdict, is_irrecoverable, list_risks
from wsh.contract.identity import Identity, IdentityRegistry, describe_leaving, not_found
from wsh.contract.output.log import OutputLog
from wsh.contract.output.observer import Attached, OutputObserver, TypedCommand
from wsh.contract.output.text import RenderText, read_text
from wsh.contract.reply.fault import ContractFault, bad_field
from wsh.contract.reply.response import Outcome
from wsh.contract.reply.result import make_result, wait_for_news, wait_for_wake
from wsh.contract.request.correlation import Correlated, make_id
from wsh.contract.request.model import ContractRequest, RequestTarget
from wsh.contract.request.policy_request import find_cwd, make_policy_request, result_entry, speak
from wsh.policy import Action, Effect, Risk, Verdict
from wsh.wire.caller import Caller
from wsh.wire.json.object import JsonObject
from wsh.wire.system.task_set import TaskSet

log = logging.getLogger("wsh.contract")

_ACTIONS: dict[RequestKind, Action] = {"run": Action.EXECUTE, "open": Action.OPEN, "send": Action.SEND}
_NO_WINDOW = frozenset({"PM_TERM_GUI_UNAVAILABLE", "PM_TERM_TIMEOUT", "PM_TERM_DISCONNECTED"})
LATE_S = 2.0
"""How long what is under way on the bridge may follow the end of a line, or of its wait."""
QUIET_S = 0.3
PATIENCE_S = 1.0
"""With a desktop that tells nothing of lines: silence that counts as an answer, and how long the first output may take."""


class HeadlessView(Protocol):
    """What the policy would say headless, for the advice in failures."""

    def ask(self, request: ContractRequest, caller: Caller) -> Verdict: ...


@dataclass(frozen=True)
class InteractiveOptions:
    max_output_bytes: int = 4 * 1024 * 1024
    reply_bytes: int = 1024 * 1024
    max_approval_ms: int = 300_000


class InteractiveRoute:
    def __init__(
        self,
        gate: Gate,
        pool: AdapterPool,
        registry: IdentityRegistry,
        headless: HeadlessView,
        render: RenderText,
        options: InteractiveOptions | None = None,
        new_id: Callable[[str], str] = make_id,
    ) -> None:
        self.gate = gate
        self.pool = pool
        self.registry = registry
        self.headless = headless
        self.render = render
        self.options = options or InteractiveOptions()
        self.new_id = new_id
        self.waiting = PendingRequests()
        self.server: ServerAdapter | None = None
        """The queue in this server, if there may be one."""
        self.server_enabled = False
        """Whether the user turned it on (`approvals.server`)."""
        self.folder: RequestFolder | None = None
        """Where requests that wait in this server are kept for the next one."""
        self.is_connected: Callable[[str], bool] = lambda owner: True
        """Whether the connection that owns a request is there."""
        self._asked: set[AskedRequest] = set()
        self._tasks = TaskSet()

    @property
    def holds_server(self) -> bool:
        """Whether a request waits that its caller asked to keep."""
        return any(asked.keep for asked in self._asked)

    def caller_gone(self, connection: str) -> None:
        """A connection ended: what it asked for, and did not ask to keep, can no longer be approved."""
        for asked in list(self._asked):
            if asked.belongs_to(connection):
                self._tasks.start(asked.withdraw("caller_gone"))

    async def start(self, asked: AskedRequest) -> None:
        """Let it live: from now on it can be answered, and its caller's going away ends it."""
        await asked.start()
        self._asked.add(asked)

    def go_on(self, asked: AskedRequest, since: float) -> None:
        """The same for one that an earlier server left."""
        asked.go_on(since)
        self._asked.add(asked)

    async def begin(self, terminal_id: str, sid: str) -> None:
        """The program of a request is about to run. Raises OSError, and then it must not."""
        for asked in self._asked:
            if asked.request.terminal_id == terminal_id:
                await asked.begin(sid)
                return

    def end_question(self, asked: AskedRequest) -> None:
        """A question of which nothing runs has been settled."""
        self._asked.discard(asked)
        self.record_approval(asked)

    async def aclose(self) -> None:
        """Withdraw pending requests and close the queue and the desktops. Programs go on."""
        if self.server is not None:
            await self.server.close()
        for asked in list(self._asked):
            if (
                asked.adapter is not self.server
            ):  # those of a queue that is closed end by themselves, with what became of them
                asked.task.cancel()
        await asyncio.gather(*(asked.task for asked in self._asked), return_exceptions=True)
        await self.pool.aclose()
        await self._tasks.wait()  # requests that are being taken back wait for their desktops

    # execute

    async def execute(
        self, request: ContractRequest, caller: Caller, ids: Correlated, leaves: str | None = None
    ) -> Outcome:
        """`leaves` is the sandbox that a caller asks to leave, where it differs from the one that agents get."""
        if request.execution is not None and request.execution.sandbox == "off":
            leaves = leaves or self._find_sandbox(caller)
        into = self._find_terminal(request, caller)
        kind: RequestKind = "send" if into else "open" if request.invocation.intent == "open_only" else "run"
        timeout_ms = request.runtime.timeout_ms or read_request_timeout_ms(caller.environ)
        try:
            return await self._execute(request, caller, ids, kind, into, timeout_ms, leaves)
        except ContractFault as fault:
            if fault.code in {"PM_TERM_GUI_UNAVAILABLE", "PM_TERM_TIMEOUT"} and kind == "run":
                fault.details.setdefault("headless_verdict", self._headless_verdict(request, caller))
            raise

    def _find_terminal(self, request: ContractRequest, caller: Caller) -> Identity | None:
        if request.target is None:
            return None
        identity = self.registry.get(request.target, caller, request)
        if not identity.running:
            raise not_found(request.target, reason="terminal_ended")
        return identity

    def _find_sandbox(self, caller: Caller) -> str:
        agents = self.gate.find_sandbox(caller)
        if agents is None:
            problem = "there is no sandbox to leave: agents get none here"
            raise bad_field("execution.sandbox", problem, reason="no_sandbox")
        return agents

    def _headless_verdict(self, request: ContractRequest, caller: Caller) -> JsonObject:
        if request.execution is not None and request.execution.sandbox == "off":
            return {"effect": "deny", "reason": "sandbox", "message": "Headless commands stay in their sandbox"}
        try:
            return headless_verdict(self.headless.ask(request, caller))
        except ContractFault as fault:
            return {"effect": "deny", "reason": fault.details.get("reason", "invalid"), "message": fault.message}

    async def _execute(
        self,
        request: ContractRequest,
        caller: Caller,
        ids: Correlated,
        kind: RequestKind,
        into: Identity | None,
        timeout_ms: int,
        leaves: str | None,
    ) -> Outcome:
        cwd = None if kind == "send" else _find_cwd(request, caller)
        question = make_policy_request(request, caller, cwd, "interactive", _ACTIONS[kind], self.gate.home)
        identity = into or self._new_identity(request, caller, ids, cwd)
        if leaves is not None:
            identity.facts["leaving"] = describe_leaving(request, leaves)
        verdict = self.gate.decide(question, caller, ids, identity.session_id)
        if verdict.effect is Effect.DENY or is_irrecoverable(verdict):
            raise blocked(verdict)
        adapter = await self._adapter_for(request, caller, ids, into)
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        asked = self._make_asked(request, caller, ids, kind, identity, into, cwd, verdict, adapter, timeout_ms, leaves)
        cursor = identity.log.end
        attached: Attached
        if into is None:
            assert asked.ear is not None
            identity.handle = Attached(adapter, asked.ear, asked)
            identity.approval = "pending"
            self.registry.add(identity)
        else:
            attached = identity.handle
            attached.lines.append(asked)
            identity.facts["line"] = TypedCommand(asked.request.command, asked.request.id, attached.ear, asked)
        await self.start(asked)
        await self._wait_for_answer(asked, deadline)
        if asked.is_pending:
            return await self._tell_pending(asked, cursor)
        if asked.fault is not None:
            if into is None:
                self.registry.remove(identity)
            raise asked.fault
        if kind == "send":
            return await self._follow_line(identity, asked, cursor, deadline)
        return await self._follow(identity, kind, cursor, deadline, ids)

    async def _wait_for_answer(self, asked: AskedRequest, deadline: float) -> None:
        """Until the request is settled, or the call's time is over. Cancelled, it is taken back where that means so."""
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        try:
            await asyncio.wait({asked.task}, timeout=left_s)
        except asyncio.CancelledError as cancelled:
            if asked.ends_with_call(cancelled):
                await finish_cleanup(self._take_back(asked))
            raise

    async def _take_back(self, asked: AskedRequest) -> None:
        await asked.withdraw("cancelled")
        if asked.is_approved and asked.request.kind != "send":
            await asked.adapter.terminate(asked.request.terminal_id, asked.ids.trace_id)

    async def _tell_pending(self, asked: AskedRequest, cursor: int | None) -> Outcome:
        identity = asked.identity
        result = await self._result(identity, cursor)
        entry = self.waiting.find(asked.request.id)
        left_s = entry.left_s if entry is not None else asked.request.deadline_ms / 1000
        result |= {
            "approval": "pending",
            "approval_id": asked.request.id,
            "approval_left_ms": max(0, round(left_s * 1000)),
        }
        if asked.request.kind == "send":
            result["running"] = False
            result["terminal_running"] = identity.running
        return Outcome("accepted", result, identity.to_wire())

    def _make_asked(
        self,
        request: ContractRequest,
        caller: Caller,
        ids: Correlated,
        kind: RequestKind,
        identity: Identity,
        into: Identity | None,
        cwd: str | None,
        verdict: Verdict,
        adapter: RuntimeAdapter,
        timeout_ms: int,
        leaves: str | None,
    ) -> AskedRequest:
        life_ms = self.gate.approval_ms(caller, self.options.max_approval_ms)
        asks = self._ask(request, caller, ids, kind, identity, cwd, verdict, life_ms)
        if leaves is not None:
            asks = asks.model_copy(update={"leaves": leaves, "effect": "ask"})
        if kind == "send" and adapter.knows("line"):
            asks = asks.model_copy(update={"wait_ms": timeout_ms})
        ear = OutputObserver(identity, lambda ended: self.record_exit(ended, caller, ids)) if into is None else None
        keep = request.runtime.keep_pending or False
        folder = self.folder if adapter is self.server and into is None else None
        return AskedRequest(
            asks, adapter, identity, ear, verdict, caller, ids, keep, self.waiting, self.settle, folder=folder
        )

    def settle(self, asked: AskedRequest, *, is_new: bool = True) -> None:
        """What became of a request goes into the trail if it `is_new`, and to its identity, also when no caller waits any more."""
        self._asked.discard(asked)
        identity, decision = asked.identity, asked.decision
        if is_new:
            self.record_approval(asked)
        attached: Attached = identity.handle
        if asked in attached.lines:
            attached.lines.remove(asked)
        opens = asked.request.kind != "send"
        if decision is not None and decision.outcome == "approved":
            self._note_approval(identity, asked, decision)
            if opens:
                identity.approval = "approved"
                identity.rows, identity.cols = decision.rows or identity.rows, decision.cols or identity.cols
                assert asked.ear is not None
                asked.ear.approved()
        elif opens:
            match asked.outcome:
                case "declined" | "expired" | "withdrawn" | "refused" as outcome:
                    identity.approval = outcome
                case _:  # nobody decided: the desktop is gone, or the request never reached it
                    identity.approval = "refused"
            identity.fault = asked.fault
            identity.end(None)
        identity.log.wake()
        self.waiting.changed()

    async def _adapter_for(
        self, request: ContractRequest, caller: Caller, ids: Correlated, into: Identity | None
    ) -> RuntimeAdapter:
        if into is not None:
            attached: Attached = into.handle
            adapter = await self.pool.reattach(attached.adapter, ids.trace_id)
            if attached.ear.is_lost:
                await self._sync(into, ids)
                if not into.running:
                    assert request.target is not None
                    raise not_found(request.target, reason="terminal_ended")
            return adapter
        override = request.runtime.adapter_override
        across = resolve_mode(override, caller.environ).mode == "container_bridge"
        if self.server is None or not self.server_enabled or across:
            return await self.pool.get(caller.environ, request.runtime, ids.trace_id)
        try:
            return await self.pool.get(caller.environ, request.runtime, ids.trace_id, may_launch=False)
        except ContractFault as fault:
            if fault.code not in _NO_WINDOW:
                raise
            return self.server

    def _new_identity(self, request: ContractRequest, caller: Caller, ids: Correlated, cwd: str | None) -> Identity:
        return Identity(
            session_id=self.new_id("sess"),
            terminal_id=self.new_id("term"),
            mode="interactive",
            owner=caller.id,
            workspace_id=request.runtime.workspace_id,
            caller_surface=request.compat.caller_surface,
            command=speak(request.execution) if request.execution and request.execution.command else None,
            argv=(),
            cwd=cwd,
            trace_id=ids.trace_id,
            started=time.time(),
            log=OutputLog(self.options.max_output_bytes),
        )

    def _ask(
        self,
        request: ContractRequest,
        caller: Caller,
        ids: Correlated,
        kind: RequestKind,
        identity: Identity,
        cwd: str | None,
        verdict: Verdict,
        life_ms: int,
    ) -> ApprovalRequest:
        execution = request.execution
        assert identity.terminal_id is not None
        return ApprovalRequest(
            id=self.new_id("br"),
            trace_id=ids.trace_id,
            request_id=ids.request_id,
            kind=kind,
            session_id=identity.session_id,
            terminal_id=identity.terminal_id,
            command=speak(execution) if execution and execution.command else "",
            argv=_argv(request, verdict) if kind == "run" else [],
            cwd=cwd,
            env=dict(execution.env or {}) if execution and kind != "send" else {},
            title=request.compat.name,
            effect="allow" if verdict.effect is Effect.ALLOW and verdict.risk is Risk.NONE else "ask",
            risk=verdict.risk.value,
            reasons=list_risks(verdict),
            rule=verdict.rule,
            asker=Asker(
                caller=caller.id,
                client=caller.client or None,
                surface=request.compat.caller_surface,
                workspace_id=request.runtime.workspace_id,
            ),
            deadline_ms=life_ms,
            note=execution.note if execution is not None else None,
            badges=list(make_badges(verdict)),
        )

    def _note_approval(self, identity: Identity, asked: AskedRequest, decision: Decision) -> None:
        verdict = asked.verdict
        if decision.evidence is not None and not identity.argv:
            identity.argv = tuple(decision.evidence.argv)
        identity.facts["approved_by"] = decision.by
        identity.facts["approval_scope"] = decision.scope
        if decision.edited and decision.evidence is not None:
            identity.facts["edited_argv"] = list(decision.evidence.argv)
            identity.warning = "The person edited the command before approving it."
        if verdict.risk is Risk.DESTRUCTIVE:
            identity.authorization = "allowed_with_warning"
            identity.warning = "Destructive, and approved: " + "; ".join(list_risks(verdict) or [verdict.message])

    async def _follow(
        self, identity: Identity, kind: RequestKind, cursor: int, deadline: float, ids: Correlated
    ) -> Outcome:
        """Wait for what was started, for as long as the call may take."""
        loop = asyncio.get_running_loop()
        attached: Attached = identity.handle
        try:
            if kind == "run":
                while identity.running and not attached.ear.is_lost and loop.time() < deadline:
                    left_s = deadline - loop.time()
                    await wait_for_news(identity, identity.log.end, left_s, lambda: attached.ear.is_lost)
        except asyncio.CancelledError:
            if kind == "run" and identity.running:
                assert identity.terminal_id is not None
                await finish_cleanup(attached.adapter.terminate(identity.terminal_id, ids.trace_id))
            raise
        if kind == "run" and identity.running and attached.ear.is_lost:
            raise _lost(identity, attached.adapter)
        done = kind == "open" or not identity.running
        return Outcome("completed" if done else "accepted", await self._result(identity, cursor), identity.to_wire())

    async def _result(self, identity: Identity, cursor: int | None) -> JsonObject:
        reading = await read_text(identity, cursor, self.options.reply_bytes, self.render)
        result = make_result(identity, reading)
        line: TypedCommand | None = identity.facts.get("line")
        if line is not None:
            result["line"] = line.describe(identity)
        return result

    async def _follow_line(self, identity: Identity, asked: AskedRequest, cursor: int, deadline: float) -> Outcome:
        """Wait for the end of what was typed, as far as the shell, or the terminal's own end, tells of one."""
        loop = asyncio.get_running_loop()
        attached: Attached = identity.handle
        ear = attached.ear
        line = TypedCommand(asked.request.command, asked.request.id, ear, asked)
        if asked.request.wait_ms is None:
            await self._wait_for_quiet(identity, cursor, deadline)
        else:
            # The desktop's own clock ends the wait; ours is for a desktop that hangs.
            await _wait_while(identity, lambda: line.frame is None and not ear.is_lost, deadline + LATE_S)
            if line.frame is None and not identity.running:
                late = min(deadline, loop.time()) + LATE_S
                while line.frame is None and loop.time() < late:
                    await wait_for_wake(identity, late - loop.time())
        if identity.running and ear.is_lost:
            raise _lost(identity, attached.adapter)
        if line.frame is not None:
            until = line.frame.offset
            await _wait_while(identity, lambda: ear.received < until and not ear.is_lost, loop.time() + LATE_S)
        result = await self._result(identity, cursor)
        result |= line.describe(identity)
        if line.frame is not None and line.frame.output is not None:
            result["stdout"] = line.frame.output
            if line.frame.omitted_bytes:
                result["omitted_bytes"] = line.frame.omitted_bytes
        del result["line"], result["command"]
        result["terminal_running"] = identity.running
        return Outcome("accepted" if result["running"] else "completed", result, identity.to_wire())

    async def _wait_for_quiet(self, identity: Identity, cursor: int, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        await wait_for_news(identity, cursor, min(PATIENCE_S, max(0.0, deadline - loop.time())))
        while identity.running and (left := min(QUIET_S, deadline - loop.time())) > 0:
            seen = identity.log.end
            await wait_for_news(identity, seen, left)
            if identity.log.end == seen:
                return

    # follow-ups

    async def read_output(self, identity: Identity, request: ContractRequest, ids: Correlated) -> Outcome:
        assert request.target is not None
        cursor = request.target.cursor
        wait_ms = request.runtime.timeout_ms or 0
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        attached: Attached = identity.handle
        if identity.is_pending:
            left_s = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait({attached.asked.task}, timeout=left_s)
            if identity.is_pending:
                return await self._tell_pending(attached.asked, cursor)
        if identity.fault is not None and identity.approval != "withdrawn":
            raise _with_identity(identity.fault, identity)
        while identity.running:
            await self._sync(identity, ids)
            left = deadline - asyncio.get_running_loop().time()
            start = identity.log.start if cursor is None else cursor
            if left <= 0 or not identity.running or identity.log.end > start:
                break
            await wait_for_news(identity, cursor, min(left, 0.5))
        done = not identity.running
        return Outcome("completed" if done else "accepted", await self._result(identity, cursor), identity.to_wire())

    async def refresh(self, identities: Sequence[Identity], request: ContractRequest, ids: Correlated) -> None:
        """Ask desktops whose connection dropped what became of their terminals, for as long as the call may wait.

        One that cannot be asked in time is marked as not reachable; whether it runs is not known.
        """
        lost = [known for known in identities if isinstance(known.handle, Attached) and known.handle.ear.is_lost]
        if not lost:
            return
        asking = {asyncio.ensure_future(self._sync(identity, ids)): identity for identity in lost}
        try:
            await asyncio.wait(asking, timeout=request.timeout_ms / 1000)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        for task, identity in asking.items():
            identity.reachable = not task.cancelled() and task.exception() is None

    async def _sync(self, identity: Identity, ids: Correlated) -> None:
        """Take over what the desktop has and we have not. A desktop that knows nothing of it was restarted."""
        attached: Attached = identity.handle
        try:
            adapter = await self.pool.reattach(attached.adapter, ids.trace_id)
        except ContractFault as fault:
            fault.details.setdefault("request_state", "started")
            raise
        assert identity.terminal_id is not None
        was_lost = attached.ear.is_lost
        if adapter.knows("resume"):  # then it is heard again since the connection is there
            attached.ear.is_lost = False
        while identity.running:
            try:
                frame = await adapter.read(identity.terminal_id, attached.ear.received, ids.trace_id)
            except ContractFault as fault:
                if fault.code != "PM_TERM_NOT_FOUND":
                    raise
                identity.warning = "The desktop that ran it is gone; how it ended is not known."
                identity.end(None)
                break
            attached.ear.take_output(frame)
            if not frame.data:
                break
        if was_lost and not identity.running:
            adapter.forget(identity.terminal_id)

    async def terminate(self, identity: Identity, request: ContractRequest, ids: Correlated) -> Outcome:
        survivors: list[int] = []
        attached: Attached = identity.handle
        if identity.is_pending:
            await attached.asked.withdraw("cancelled")
        for line in list(attached.lines):
            await line.withdraw("cancelled")
        if identity.running:
            adapter = await self.pool.reattach(attached.adapter, ids.trace_id)
            assert identity.terminal_id is not None
            try:
                frame = await adapter.terminate(identity.terminal_id, ids.trace_id)
            except ContractFault as fault:
                if fault.code == "PM_TERM_NOT_FOUND":
                    identity.end(None)
                    target = RequestTarget(session_id=identity.session_id, terminal_id=identity.terminal_id)
                    raise not_found(target, reason="terminal_gone") from None
                raise
            identity.terminated = True
            survivors = list(frame.survivors)
            attached.ear.take_exit(frame)
        result = await self._result(identity, identity.log.end)
        result["terminated"] = True
        if survivors:
            result["survivors"] = survivors
        return Outcome("completed", result, identity.to_wire())

    # the trail

    def record_approval(self, asked: AskedRequest) -> None:
        """One record per decision: its outcome, who gave it and where, and what it lets run."""
        request, decision = asked.request, asked.decision
        entry: JsonObject = {
            "kind": "approval",
            "tool": "contract",
            "request": request.id,
            "request_kind": request.kind,
            "trace_id": asked.ids.trace_id,
            "request_id": asked.ids.request_id,
            "session_id": request.session_id,
            "actor": asked.caller.id,
            "client": asked.caller.client or None,
            "mode": "interactive",
            "outcome": asked.outcome,
            "place": name_place(asked),
            "argv": [escape_argument(word) for word in request.argv] or [escape_argument(request.command)],
            "cwd": request.cwd,
            "risk": request.risk,
            "badges": [badge.name for badge in request.badges or ()],
            **({"leaves_sandbox": request.leaves, "note": request.note} if request.leaves is not None else {}),
        }
        waited = self.waiting.find(request.id)
        if waited is not None and waited.card is not None:
            card = waited.card
            entry |= {"argv": card.argv, "cwd": card.cwd, "risk": card.risk, "badges": [b.name for b in card.badges]}
        if decision is not None:
            entry |= {
                "by": decision.by,
                "where": decision.where,
                "scope": decision.scope,
                "reason": decision.reason,
                "code": decision.code,
                "edited": decision.edited,
            }
            if decision.evidence is not None:
                entry |= {
                    "argv": decision.evidence.argv,
                    "cwd": decision.evidence.cwd,
                    "executable": decision.evidence.executable,
                    "executable_sha256": decision.evidence.executable_sha256,
                    "binding": decision.evidence.binding,
                }
        self.gate.record(entry)

    def find_session_name(self, entry: PendingRequest) -> str | None:
        """The session of the server that an approved command runs in; None if it runs in the window."""
        if self.server is None or entry.adapter is not self.server or entry.identity.terminal_id is None:
            return None
        return self.server.find_session_name(entry.identity.terminal_id)

    async def read_tail(self, entry: PendingRequest, max_bytes: int) -> str:
        """The newest of what an approved command printed."""
        log = entry.identity.log
        reading = await read_text(entry.identity, max(log.start, log.end - max_bytes), max_bytes, self.render)
        return reading.stdout

    def record_exit(self, identity: Identity, caller: Caller, ids: Correlated) -> None:
        self.gate.record(result_entry(identity, caller, ids, round((time.monotonic() - identity.began) * 1000)))
        attached: Attached = identity.handle
        if attached.asked.folder is not None:
            self._tasks.start(attached.asked.folder.note_exit(attached.asked.request.id))


def name_place(asked: AskedRequest) -> Place:
    if asked.request.kind == "hook":
        return "host"
    if asked.request.kind == "hidden":
        return "server"
    return "server" if asked.adapter.adapter_type == "server" else "window"


def _lost(identity: Identity, adapter: RuntimeAdapter) -> ContractFault:
    return ContractFault(
        "PM_TERM_DISCONNECTED",
        "The connection to the desktop was lost while the command ran; it may still be running there.",
        request_state="started",
        next_recommended_action="Reconnect by reading the output of this session; nothing was repeated.",
        identity=identity.to_wire(),
        **adapter.describe_peer(),
    )


async def _wait_while(identity: Identity, condition: Callable[[], bool], deadline: float) -> None:
    """Until `condition` no longer holds (looked at on every wake), the terminal ends, or `deadline`."""
    loop = asyncio.get_running_loop()
    while identity.running and condition() and (left := deadline - loop.time()) > 0:
        await wait_for_wake(identity, left)


def _find_cwd(request: ContractRequest, caller: Caller) -> str | None:
    """On this machine paths are checked here; across a bridge only the desktop knows what they mean."""
    if resolve_mode(request.runtime.adapter_override, caller.environ).mode != "container_bridge":
        return find_cwd(request, caller)
    cwd = request.runtime.cwd
    if cwd is not None and not cwd.startswith("/"):
        raise bad_field("runtime.cwd", "must be an absolute path on the desktop's machine", reason="relative_cwd")
    return cwd


def _argv(request: ContractRequest, verdict: Verdict) -> list[str]:
    """What the desktop runs: literal words as they are, anything else through a shell that the person sees."""
    execution = request.execution
    assert execution is not None and execution.command is not None
    if execution.args:
        return [execution.command, *execution.args]
    if len(verdict.argv) == 1:
        return list(verdict.argv[0])
    return ["sh", "-c", execution.command]


def _with_identity(fault: ContractFault, identity: Identity) -> ContractFault:
    """The same again for another call: faults are answered once each."""
    return ContractFault(fault.code, fault.message, **{**fault.details, "identity": identity.to_wire()})
