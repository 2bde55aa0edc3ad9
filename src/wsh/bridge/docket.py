"""The requests of one connected server: admitted, resolved, judged, shown, answered once, and run or not.

Every change of state goes through the ledger. Knows the connection only as something to send frames to.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsh.bridge.desktop import Answer, Judgement, Order, Pending, StartFailed, TypedLine
from wsh.bridge.evidence import CannotRun, Evidence, resolve, resolve_typing
from wsh.bridge.fault import FrameTooLarge
from wsh.bridge.frame import Decision, Error, Line, Outcome, Request, Scope, Withdraw
from wsh.bridge.ledger import DuplicateId, QueueFull, State
from wsh.bridge.terminal import BridgeTerminal

if TYPE_CHECKING:
    from wsh.bridge.peer import Peer

log = logging.getLogger("wsh.bridge")

_STRICTNESS = {"allow": 0, "ask": 1, "refuse": 2}
_LINE_WAIT_S = 0.3
"""How long a line is waited for where the server does not say."""
_RISK = {"none": 0, "destructive": 1, "irrecoverable": 2}


@dataclass
class _Asked:
    """A request that is not settled yet, and its card once the person sees it."""

    request: Request
    since: float
    deadline: float
    timer: asyncio.TimerHandle
    card: Pending | None = None


class Docket:
    """What a connection has asked for. Answers may come from any thread; everything else is on the loop."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._asked: dict[str, _Asked] = {}

    def withdraw_all(self) -> None:
        """The caller vanished: what waits can no longer be approved."""
        for key in self.peer.listener.ledger.withdraw_all(self.peer):
            self._close_card(key, "withdrawn", "the connection ended")

    def _key(self, request_id: str) -> str:
        return f"{self.peer.runtime_session_id}/{request_id}"

    def admit(self, request: Request) -> None:
        key = self._key(request.id)
        if request.kind != "send" and self.peer.listener.terminals.knows(request.terminal_id):
            self._reject(request, "duplicate_id", f"There is a terminal {request.terminal_id!r} already.")
            return
        try:
            self.peer.listener.ledger.open(key, self.peer, request.deadline_ms / 1000)
        except DuplicateId:
            self._reject(request, "duplicate_id", f"The request id {request.id!r} was used before.")
            return
        except QueueFull:
            limit = self.peer.listener.ledger.max_pending
            self._reject(request, "queue_full", f"{limit} requests wait for the person already.", max_pending=limit)
            return
        life_s = request.deadline_ms / 1000
        timer = self.peer.loop.call_later(life_s, self._expire, request)
        now = time.monotonic()
        self._asked[key] = _Asked(request, now, now + life_s, timer)
        self.peer.spawn(self._present(request, key), "bridge-present")

    def _reject(self, request: Request, code: str, message: str, **details: object) -> None:
        self.peer.send(Error(code=code, message=message, reply_to=request.id, details=dict(details)))

    def _session_of(self, request: Request) -> str:
        return f"{self.peer.runtime_session_id}/{request.asker.caller}"

    async def _resolve(self, request: Request, argv: tuple[str, ...] | None = None) -> Evidence:
        end = self.peer.listener.end
        session = self._session_of(request)
        if request.kind == "send":
            terminal = self.peer.listener.terminals.find(request.terminal_id, self.peer.runtime_session_id)
            if terminal is None:
                raise CannotRun("unknown_terminal", f"There is no terminal {request.terminal_id!r}.")
            if not terminal.running:
                raise CannotRun("terminal_ended", f"The program in terminal {request.terminal_id!r} has ended.")
            text = request.command if argv is None else " ".join(argv)
            return resolve_typing(text, request.terminal_id, session)
        words = argv or tuple(request.argv) or tuple(end.shell())
        cwd = request.cwd or end.default_cwd()
        return await asyncio.to_thread(resolve, words, cwd, request.env, end.base_environment(), session)

    async def _present(self, request: Request, key: str) -> None:
        """Resolve, judge, and then run at once, show, or refuse."""
        ledger, end = self.peer.listener.ledger, self.peer.listener.end
        try:
            evidence = await self._resolve(request)
            judgement = _stricter(request, end.judge(request, evidence))
        except CannotRun as problem:
            self._refuse(request, key, problem.code, problem.message)
            return
        except Exception:
            log.exception("bridge %s: request could not be judged, trace %s", self.peer.name, request.trace_id)
            self._refuse(request, key, "internal", "The desktop could not judge the request.")
            return
        if judgement.effect == "refuse":
            self._refuse(request, key, "forbidden", "; ".join(judgement.reasons) or "The desktop's policy forbids it.")
            return
        asked = self._asked.get(key)
        if asked is None:  # settled while it was being resolved
            return
        deadline = asked.deadline
        pending = Pending(
            request, evidence, judgement, self.peer.name, lambda: deadline - time.monotonic(), self._answered
        )
        if judgement.effect == "allow":
            if ledger.claim(key):
                rule = judgement.rule or "policy"
                self.peer.spawn(self._start(pending, Answer(True, "rule", rule, None, None)), "bridge-start")
        elif ledger.is_granted(evidence.binding):
            if ledger.claim(key):
                self.peer.spawn(self._start(pending, Answer(True, "session", "person", None, None)), "bridge-start")
        else:
            asked.card = pending
            end.request_arrived(pending)
            self.peer.show(pending)

    def find_card(self, request_id: str) -> Pending | None:
        """The card of a request that is in front of the person."""
        asked = self._asked.get(self._key(request_id))
        return asked.card if asked is not None else None

    def find_state(self, request_id: str) -> State | None:
        return self.peer.listener.ledger.state(self._key(request_id))

    def _answered(self, pending: Pending, answer: Answer) -> bool:
        """From any thread: the state changes here and now, the rest happens on the loop."""
        key = self._key(pending.request.id)
        if not answer.yes:
            counted = self.peer.listener.ledger.decline(key)
            if counted:
                self._later(lambda: self._declined(pending, answer))
            return counted
        if not self.peer.listener.ledger.claim(key):
            return False
        return self._later(lambda: self.peer.spawn(self._start(pending, answer), "bridge-start"))

    def _later(self, work: Callable[[], None]) -> bool:
        try:
            self.peer.loop.call_soon_threadsafe(work)
        except RuntimeError:  # the loop ended under a window that is still open
            return False
        return True

    def _declined(self, pending: Pending, answer: Answer) -> None:
        self._settle(pending.request, "declined", by=answer.by, reason=answer.reason, evidence=pending.evidence)

    async def _start(self, pending: Pending, answer: Answer) -> None:
        """Check once more that it is what was shown, pass the point of no return, run, and say so."""
        request, key, end = pending.request, self._key(pending.request.id), self.peer.listener.end
        try:
            evidence = await self._resolve(request, answer.argv)
        except CannotRun as problem:
            self._refuse(request, key, problem.code, problem.message)
            return
        if answer.argv is not None:
            judgement = end.judge(request.model_copy(update={"argv": list(answer.argv)}), evidence)
            if judgement.effect == "refuse" or judgement.risk == "irrecoverable":
                self._refuse(request, key, "forbidden", "The edited command is forbidden by the desktop's policy.")
                return
        elif evidence.binding != pending.evidence.binding:
            self._refuse(request, key, "changed", "What would run is no longer what was shown.")
            return
        if not self.peer.listener.ledger.start(key):  # withdrawn meanwhile; that has been answered
            return
        terminal: BridgeTerminal | None = None
        size: tuple[int, int] | None = None
        try:
            if request.kind == "send":
                await self._type(request, evidence.argv[0])
            else:
                terminal = self.peer.listener.terminals.add(
                    request.session_id, request.terminal_id, self.peer.runtime_session_id, request.trace_id
                )
                size = await end.run(_order(request, evidence), terminal)
        except Exception as problem:
            if terminal is not None:
                self.peer.listener.terminals.forget(request.terminal_id)
            if not isinstance(problem, StartFailed):
                log.exception("bridge %s: could not start, trace %s", self.peer.name, request.trace_id)
            failed = problem if isinstance(problem, StartFailed) else StartFailed("The desktop could not start it.")
            self._settle(request, "refused", code=failed.code, reason=failed.message, evidence=evidence)
            return
        if answer.scope == "session" and answer.argv is None:
            self.peer.listener.ledger.grant(evidence.binding, self.peer.listener.options.grant_life_s)
        self._settle(
            request,
            "approved",
            scope=answer.scope,
            by=answer.by,
            evidence=evidence,
            edited=answer.argv is not None,
            size=size,
        )
        if terminal is not None:
            self.peer.spawn(self.peer.stream_output(terminal), "bridge-output")

    async def _type(self, request: Request, text: str) -> None:
        """Return when it is typed; what comes of it is told later, by a `line` frame. Raises StartFailed."""
        asked = self._asked.get(self._key(request.id))
        since = asked.since if asked is not None else time.monotonic()
        wait_s = _LINE_WAIT_S
        if request.wait_ms is not None:
            wait_s = max(_LINE_WAIT_S, since + request.wait_ms / 1000 - time.monotonic())
        typed: asyncio.Future[None] = self.peer.loop.create_future()

        def note() -> None:
            if not typed.done():
                typed.set_result(None)

        async def follow() -> None:
            end = self.peer.listener.end
            try:
                line = await end.type_line(request.terminal_id, text, wait_s, note)
            except Exception as problem:
                if typed.done():
                    log.exception("bridge %s: a line was lost, trace %s", self.peer.name, request.trace_id)
                else:
                    typed.set_exception(problem)
                return
            finally:
                if not typed.done() and (task := asyncio.current_task()) is not None and task.cancelling():
                    typed.set_exception(StartFailed("The connection ended before it was typed."))
            note()
            self._tell_line(request, line)
            if not line.has_ended:
                later = await end.await_line(request.terminal_id, line)
                if later is not None:
                    self._tell_line(request, later)

        self.peer.spawn(follow(), "bridge-line")
        await typed

    def _tell_line(self, request: Request, line: TypedLine) -> None:
        terminal = self.peer.listener.terminals.find(request.terminal_id, self.peer.runtime_session_id)
        if not self.peer.wants_lines or terminal is None:
            return
        frame = Line(
            request=request.id,
            terminal_id=request.terminal_id,
            trace_id=request.trace_id,
            finished_by=line.finished_by,
            exit_code=line.exit_code,
            output=line.output,
            omitted_bytes=line.omitted_bytes,
            duration_ms=line.duration_ms,
            offset=terminal.buffer.end,
        )
        try:
            self.peer.send(frame)
        except FrameTooLarge:  # escaped, a text may be larger than it came; how it ended matters more
            self.peer.send(frame.model_copy(update={"output": None}))

    def withdraw(self, frame: Withdraw) -> None:
        key = self._key(frame.id)
        state = self.peer.listener.ledger.state(key)
        if state is None:
            self.peer.send(Error(code="unknown_request", message=f"No request {frame.id!r}.", reply_to=frame.id))
        elif self.peer.listener.ledger.withdraw(key):
            self._settle(self._asked[key].request, "withdrawn", reason=frame.reason)

    def _expire(self, request: Request) -> None:
        key = self._key(request.id)
        if self.peer.listener.ledger.expire(key):
            self._settle(request, "expired", reason="nobody answered in time")

    def _refuse(self, request: Request, key: str, code: str, reason: str) -> None:
        if self.peer.listener.ledger.refuse(key):
            self._settle(request, "refused", code=code, reason=reason)

    def _settle(
        self,
        request: Request,
        outcome: Outcome,
        *,
        scope: Scope | None = None,
        by: str | None = None,
        code: str | None = None,
        reason: str | None = None,
        evidence: Evidence | None = None,
        edited: bool = False,
        size: tuple[int, int] | None = None,
    ) -> None:
        rows, cols = size if size is not None and self.peer.wants_lines else (None, None)
        decision = Decision(
            id=request.id,
            trace_id=request.trace_id,
            outcome=outcome,
            scope=scope,
            by=by,
            code=code,
            reason=reason,
            session_id=request.session_id,
            terminal_id=request.terminal_id,
            edited=edited,
            evidence=evidence.to_frame() if evidence else None,
            rows=rows,
            cols=cols,
        )
        try:
            self.peer.send(decision)
        except FrameTooLarge:  # escaped, an argument may be larger than it came; the answer matters more
            self.peer.send(decision.model_copy(update={"evidence": None}))
        self._close_card(self._key(request.id), outcome, reason)

    def _close_card(self, key: str, outcome: Outcome, reason: str | None) -> None:
        asked = self._asked.pop(key, None)
        if asked is None:
            return
        asked.timer.cancel()
        if asked.card is not None:
            try:
                self.peer.listener.end.request_closed(asked.card, outcome, reason)
            except Exception:
                log.exception("bridge %s: the desktop could not close a card", self.peer.name)


def _order(request: Request, evidence: Evidence) -> Order:
    assert evidence.executable is not None
    assert request.kind != "send"
    return Order(
        session_id=request.session_id,
        terminal_id=request.terminal_id,
        trace_id=request.trace_id,
        argv=evidence.argv,
        executable=evidence.executable,
        cwd=evidence.cwd,
        environment=evidence.environment,
        title=request.title,
        kind=request.kind,
    )


def _stricter(request: Request, judged: Judgement) -> Judgement:
    """What the server claims can only make it stricter: a token in an agent's hands must not approve anything."""
    effect = max(request.effect, judged.effect, key=_STRICTNESS.__getitem__)
    risk = max(request.risk, judged.risk, key=_RISK.__getitem__)
    if risk == "irrecoverable":
        effect = "refuse"
    elif risk == "destructive" and effect == "allow":
        effect = "ask"
    reasons = [*judged.reasons, *(reason for reason in request.reasons if reason not in judged.reasons)]
    return Judgement(effect, risk, reasons, judged.rule)
