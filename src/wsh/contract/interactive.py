"""The interactive route: ask the policy, then the person, then follow what runs at the desktop.

Nothing here runs a command; the desktop does, after a yes that was bound to exactly what it showed. A request is withdrawn
when its time is over or its caller is gone, and the desktop's one decision says what became of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from wsh.bridge.frame import Asker, Decision, Exit, Line, Output
from wsh.bridge.frame import Request as RequestFrame
from wsh.contract.adapters.base import RuntimeAdapter, SendRequestResult
from wsh.contract.adapters.classify import refusal
from wsh.contract.adapters.inputs import read_request_timeout_ms
from wsh.contract.adapters.mode import resolve_mode
from wsh.contract.adapters.pool import AdapterPool
from wsh.contract.correlation import Correlated, make_id
from wsh.contract.fault import ContractFault, bad_field
from wsh.contract.gate import Gate, blocked, headless_verdict, is_irrecoverable, list_risks
from wsh.contract.identity import Identity, IdentityRegistry, not_found
from wsh.contract.model import Request, Target
from wsh.contract.output import OutputLog
from wsh.contract.question import find_cwd, make_question, result_entry, speak
from wsh.contract.response import Outcome
from wsh.contract.result import make_result, wait_for_news, wait_for_wake
from wsh.contract.shield import finish
from wsh.contract.text import RenderText, read_text
from wsh.contract.waiting import WaitingRequests
from wsh.policy import Action, Effect, Risk, Verdict
from wsh.wire.caller import Caller
from wsh.wire.jsonobject import JsonObject

log = logging.getLogger("wsh.contract")

Kind = Literal["run", "open", "send"]
_ACTIONS: dict[Kind, Action] = {"run": Action.EXECUTE, "open": Action.OPEN, "send": Action.SEND}
LATE_S = 2.0
"""How long what is under way on the bridge may follow the end of a line, or of its wait."""
QUIET_S = 0.3
PATIENCE_S = 1.0
"""With a desktop that tells nothing of lines: silence that counts as an answer, and how long the first output may take."""


class HeadlessView(Protocol):
    """What the policy would say headless, for the advice in failures."""

    def ask(self, request: Request, caller: Caller) -> Verdict: ...


@dataclass(frozen=True)
class InteractiveOptions:
    max_output_bytes: int = 4 * 1024 * 1024
    reply_bytes: int = 1024 * 1024
    max_approval_ms: int = 300_000


class TerminalEar:
    """Hears what a terminal at the desktop prints, into an identity's log."""

    def __init__(self, identity: Identity, on_exit: Callable[[Identity], None]) -> None:
        self.identity = identity
        self.received = 0
        self.is_lost = False
        self.lines: dict[str, Line] = {}
        """The newest word on each line that was typed, by the request's id on the bridge."""
        self._is_approved = False
        self._on_exit = on_exit

    def take_output(self, frame: Output) -> None:
        data = frame.payload()
        gap = frame.offset - self.received
        if gap > 0:
            self.identity.log.skip(gap)
        elif gap < 0:
            data = data[-gap:]
        self.received = max(self.received, frame.offset + len(frame.payload()))
        if data:
            self.identity.log.append("stdout", data)
        if not frame.running:
            self._end(frame.exit_code)

    def take_line(self, frame: Line) -> None:
        self.lines[frame.request] = frame
        self.identity.log.wake()

    def take_exit(self, frame: Exit) -> None:
        if frame.terminated:
            self.identity.terminated = True
        self._end(frame.exit_code)

    def lose(self) -> None:
        self.is_lost = True
        self.identity.log.wake()

    def _end(self, exit_code: int | None) -> None:
        if self.identity.running:
            self.identity.end(exit_code)
            if self._is_approved:
                self._on_exit(self.identity)

    def approved(self) -> None:
        """The yes is in the trail. A quick command may have ended before; its end is told now, in that order."""
        self._is_approved = True
        if not self.identity.running:
            self._on_exit(self.identity)


@dataclass
class Attached:
    """An identity's `handle`: its adapter and what listens to it."""

    adapter: RuntimeAdapter
    ear: TerminalEar


@dataclass(frozen=True)
class TypedCommand:
    """A line that was typed into a terminal, and what is known of its end by now."""

    command: str
    request: str
    ear: TerminalEar

    @property
    def frame(self) -> Line | None:
        return self.ear.lines.get(self.request)

    def describe(self, identity: Identity) -> JsonObject:
        """The end of this line as a result tells it: known from the shell, or from the terminal it was typed into."""
        frame = self.frame
        ended = frame is not None and frame.finished_by in ("command", "exit")
        told: JsonObject = {
            "command": self.command,
            "running": not ended and identity.running,
            "exit_code": frame.exit_code if frame is not None and ended else identity.exit_code,
        }
        if frame is not None and frame.finished_by is not None:
            told["finished_by"] = frame.finished_by
        elif not identity.running:
            told["finished_by"] = "exit"
        if frame is not None and frame.duration_ms is not None:
            told["duration_ms"] = frame.duration_ms
        return told


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
        self.waiting = WaitingRequests()

    # execute

    async def execute(self, request: Request, caller: Caller, ids: Correlated) -> Outcome:
        into = self._find_terminal(request, caller)
        kind: Kind = "send" if into else "open" if request.invocation.intent == "open_only" else "run"
        timeout_ms = request.runtime.timeout_ms or read_request_timeout_ms(caller.environ)
        try:
            return await self._execute(request, caller, ids, kind, into, timeout_ms)
        except ContractFault as fault:
            if fault.code in {"PM_TERM_GUI_UNAVAILABLE", "PM_TERM_TIMEOUT"} and kind == "run":
                fault.details.setdefault("headless_verdict", self._headless_verdict(request, caller))
            raise

    def _find_terminal(self, request: Request, caller: Caller) -> Identity | None:
        if request.target is None:
            return None
        identity = self.registry.get(request.target, caller, request)
        if not identity.running:
            raise not_found(request.target, reason="terminal_ended")
        return identity

    def _headless_verdict(self, request: Request, caller: Caller) -> JsonObject:
        try:
            return headless_verdict(self.headless.ask(request, caller))
        except ContractFault as fault:
            return {"effect": "deny", "reason": fault.details.get("reason", "invalid"), "message": fault.message}

    async def _execute(
        self, request: Request, caller: Caller, ids: Correlated, kind: Kind, into: Identity | None, timeout_ms: int
    ) -> Outcome:
        cwd = None if kind == "send" else _find_cwd(request, caller)
        question = make_question(request, caller, cwd, "interactive", _ACTIONS[kind], self.gate.home)
        identity = into or self._new_identity(request, caller, ids, cwd)
        verdict = self.gate.decide(question, caller, ids, identity.session_id)
        if verdict.effect is Effect.DENY or is_irrecoverable(verdict):
            raise blocked(verdict)
        adapter = await self._adapter_for(request, caller, ids, into)
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        approval_ms = min(timeout_ms, self.gate.approval_ms(caller, self.options.max_approval_ms))
        frame = self._frame(request, caller, ids, kind, identity, cwd, verdict, approval_ms)
        if kind == "send" and adapter.tells_lines:
            frame = frame.model_copy(update={"wait_ms": timeout_ms})
        ear = (
            identity.handle.ear if into else TerminalEar(identity, lambda ended: self._record_exit(ended, caller, ids))
        )
        if into is None:
            identity.handle = Attached(adapter, ear)
            self.registry.add(identity)
        cursor = identity.log.end
        try:
            decision = await self._ask_person(adapter, frame, None if into else ear, approval_ms, ids)
        except BaseException as problem:
            if into is None:
                self.registry.remove(identity)
            self.waiting.leave(frame, _ended_by(problem))
            self._record_approval(None, problem, frame, caller, ids)
            raise
        self.waiting.leave(frame, decision.outcome, decision)
        self._record_approval(decision, None, frame, caller, ids)
        if decision.outcome != "approved":
            if into is None:
                self.registry.remove(identity)
            raise refusal(decision, approval_ms)
        self._note_approval(identity, decision, verdict)
        if into is None:
            identity.rows, identity.cols = decision.rows or identity.rows, decision.cols or identity.cols
            ear.approved()
        if kind == "send":
            return await self._follow_line(identity, frame, cursor, deadline)
        return await self._follow(identity, kind, cursor, deadline, ids)

    async def _adapter_for(
        self, request: Request, caller: Caller, ids: Correlated, into: Identity | None
    ) -> RuntimeAdapter:
        if into is not None:
            attached: Attached = into.handle
            return await self.pool.reattach(attached.adapter, ids.trace_id)
        return await self.pool.get(caller.environ, request.runtime, ids.trace_id)

    def _new_identity(self, request: Request, caller: Caller, ids: Correlated, cwd: str | None) -> Identity:
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

    def _frame(
        self,
        request: Request,
        caller: Caller,
        ids: Correlated,
        kind: Kind,
        identity: Identity,
        cwd: str | None,
        verdict: Verdict,
        approval_ms: int,
    ) -> RequestFrame:
        execution = request.execution
        assert identity.terminal_id is not None
        return RequestFrame(
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
            deadline_ms=approval_ms,
        )

    async def _ask_person(
        self, adapter: RuntimeAdapter, frame: RequestFrame, ear: TerminalEar | None, approval_ms: int, ids: Correlated
    ) -> Decision:
        """The desktop's decision. Cancelled, the request is withdrawn, and ended if the yes had come first."""
        self.waiting.enter(frame, adapter)
        sent = await adapter.send_request(frame, ear, self.waiting.show)
        try:
            return await adapter.await_response(sent, approval_ms / 1000)
        except asyncio.CancelledError:
            await finish(self._take_back(adapter, sent, ids))
            raise

    async def _take_back(self, adapter: RuntimeAdapter, sent: SendRequestResult, ids: Correlated) -> None:
        try:
            decision = await adapter.withdraw(sent, "cancelled")
            if decision.outcome == "approved" and sent.request.kind != "send":
                await adapter.terminate(sent.request.terminal_id, ids.trace_id)
        except ContractFault as fault:
            log.warning("a cancelled request could not be taken back: %s (trace %s)", fault.message, ids.trace_id)

    def _note_approval(self, identity: Identity, decision: Decision, verdict: Verdict) -> None:
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

    async def _follow(self, identity: Identity, kind: Kind, cursor: int, deadline: float, ids: Correlated) -> Outcome:
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
                await finish(attached.adapter.terminate(identity.terminal_id, ids.trace_id))
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

    async def _follow_line(self, identity: Identity, frame: RequestFrame, cursor: int, deadline: float) -> Outcome:
        """Wait for the end of what was typed, as far as the shell, or the terminal's own end, tells of one."""
        loop = asyncio.get_running_loop()
        attached: Attached = identity.handle
        ear = attached.ear
        line = identity.facts["line"] = TypedCommand(frame.command, frame.id, ear)
        if frame.wait_ms is None:
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

    async def read_output(self, identity: Identity, request: Request, ids: Correlated) -> Outcome:
        assert request.target is not None
        cursor = request.target.cursor
        wait_ms = request.runtime.timeout_ms or 0
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        while identity.running:
            await self._sync(identity, ids)
            left = deadline - asyncio.get_running_loop().time()
            start = identity.log.start if cursor is None else cursor
            if left <= 0 or not identity.running or identity.log.end > start:
                break
            await wait_for_news(identity, cursor, min(left, 0.5))
        done = not identity.running
        return Outcome("completed" if done else "accepted", await self._result(identity, cursor), identity.to_wire())

    async def refresh(self, identities: Sequence[Identity], request: Request, ids: Correlated) -> None:
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
        adapter = await self.pool.reattach(attached.adapter, ids.trace_id)
        assert identity.terminal_id is not None
        while identity.running:
            try:
                frame = await adapter.read(identity.terminal_id, attached.ear.received, ids.trace_id)
            except ContractFault as fault:
                if fault.code != "PM_TERM_NOT_FOUND":
                    raise
                identity.warning = "The desktop that ran it is gone; how it ended is not known."
                identity.end(None)
                return
            attached.ear.take_output(frame)
            if not frame.data:
                return

    async def terminate(self, identity: Identity, request: Request, ids: Correlated) -> Outcome:
        survivors: list[int] = []
        if identity.running:
            attached: Attached = identity.handle
            adapter = await self.pool.reattach(attached.adapter, ids.trace_id)
            assert identity.terminal_id is not None
            try:
                frame = await adapter.terminate(identity.terminal_id, ids.trace_id)
            except ContractFault as fault:
                if fault.code == "PM_TERM_NOT_FOUND":
                    identity.end(None)
                    target = Target(session_id=identity.session_id, terminal_id=identity.terminal_id)
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

    def _record_approval(
        self,
        decision: Decision | None,
        problem: BaseException | None,
        frame: RequestFrame,
        caller: Caller,
        ids: Correlated,
    ) -> None:
        entry: JsonObject = {
            "kind": "approval",
            "tool": "contract",
            "trace_id": ids.trace_id,
            "request_id": ids.request_id,
            "session_id": frame.session_id,
            "actor": caller.id,
            "mode": "interactive",
            "outcome": decision.outcome if decision else _ended_by(problem),
        }
        if decision is not None:
            entry |= {"by": decision.by, "scope": decision.scope, "reason": decision.reason, "code": decision.code}
            if decision.evidence is not None:
                entry |= {
                    "argv": decision.evidence.argv,
                    "cwd": decision.evidence.cwd,
                    "executable": decision.evidence.executable,
                    "executable_sha256": decision.evidence.executable_sha256,
                    "binding": decision.evidence.binding,
                }
        self.gate.record(entry)

    def _record_exit(self, identity: Identity, caller: Caller, ids: Correlated) -> None:
        self.gate.record(result_entry(identity, caller, ids, round((time.monotonic() - identity.began) * 1000)))


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


def _find_cwd(request: Request, caller: Caller) -> str | None:
    """On this machine paths are checked here; across a bridge only the desktop knows what they mean."""
    if resolve_mode(request.runtime.adapter_override, caller.environ).mode != "container_bridge":
        return find_cwd(request, caller)
    cwd = request.runtime.cwd
    if cwd is not None and not cwd.startswith("/"):
        raise bad_field("runtime.cwd", "must be an absolute path on the desktop's machine", reason="relative_cwd")
    return cwd


def _argv(request: Request, verdict: Verdict) -> list[str]:
    """What the desktop runs: literal words as they are, anything else through a shell that the person sees."""
    execution = request.execution
    assert execution is not None and execution.command is not None
    if execution.args:
        return [execution.command, *execution.args]
    if len(verdict.argv) == 1:
        return list(verdict.argv[0])
    return ["sh", "-c", execution.command]


def _ended_by(problem: BaseException | None) -> str:
    return problem.code if isinstance(problem, ContractFault) else "cancelled"
