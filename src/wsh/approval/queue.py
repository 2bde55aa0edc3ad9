"""The way of a request: admitted, resolved, judged, shown, answered once, and run or not.

Every change of state goes through the ledger; `expiry.py` ends what nobody answers. The asking side is known only as something to tell
(`AskingSide`), so the same queue stands behind a bridge in the window and inside the server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from wsh.approval.answer import Decided, Pending, list_scopes
from wsh.approval.approver import Approver, Order, OutputSink, StartFailed, TypedLineOutcome
from wsh.approval.card import Card, make_card
from wsh.approval.evidence import CannotRun, Evidence, resolve, resolve_hidden, resolve_hook, resolve_typing
from wsh.approval.expiry import REASON, Expiry
from wsh.approval.judgement import Judgement, take_stricter
from wsh.approval.ledger import DuplicateId, Ledger, QueueFull, State
from wsh.approval.request import ApprovalRequest, Outcome, Scope, Where

log = logging.getLogger("wsh.approval")

_LINE_WAIT_S = 0.3
"""How long a line is waited for where the asking side does not say."""
GRANT_LIFE_S = 8 * 3600.0
TerminalState: TypeAlias = Literal["running", "ended", "unknown"]


@dataclass(frozen=True)
class Settled:
    """What became of a request; told exactly once."""

    outcome: Outcome
    scope: Scope | None = None
    by: str | None = None
    where: Where | None = None
    code: str | None = None
    reason: str | None = None
    evidence: Evidence | None = None
    edited: bool = False
    rows: int | None = None
    cols: int | None = None


class AskingSide(Protocol):
    """Who asks, as the queue tells it: a server across a bridge, or the contract in the same process."""

    @property
    def name(self) -> str: ...

    @property
    def session(self) -> str:
        """Tells askers apart; part of what an approval is bound to."""

    @property
    def trail(self) -> str:
        """Names the audit log in which the asking side records decisions; empty if it does not say."""

    def look_up(self, terminal_id: str) -> TerminalState: ...

    def open_terminal(self, request: ApprovalRequest) -> OutputSink:
        """Where the output of a command that is about to start goes."""

    def forget_terminal(self, request: ApprovalRequest) -> None:
        """Undo `open_terminal`: the command did not start."""

    def take_card(self, card: Card) -> None: ...

    def take_end(self, request: ApprovalRequest, settled: Settled) -> None: ...

    def take_start(self, request: ApprovalRequest) -> None:
        """Pass its output on from now: that it was approved has been told."""

    def take_line(self, request: ApprovalRequest, line: TypedLineOutcome) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run it for as long as the asking side is there. One named `approval-start` is always finished; one named `approval-line` may be."""


class Rejected(Exception):
    """A request that cannot be admitted."""

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


@dataclass
class _Asked:
    """A request that is not settled yet, and its card once the person sees it."""

    request: ApprovalRequest
    expiry: Expiry
    card: Pending | None = None
    line: asyncio.Task[None] | None = None
    """An approved line that waits for its turn to be typed."""
    taken_back: str | None = None
    """Why that line is not to be typed any more."""


class ApprovalQueue:
    """What one side has asked for. Answers may come from any thread; everything else is on the loop."""

    def __init__(
        self, end: Approver, ledger: Ledger, asking: AskingSide, *, grant_life_s: float = GRANT_LIFE_S
    ) -> None:
        self.end = end
        self.ledger = ledger
        self.asking = asking
        self.grant_life_s = grant_life_s
        self.loop = asyncio.get_running_loop()
        self._asked: dict[str, _Asked] = {}

    def withdraw_all(self) -> None:
        """The caller vanished: what waits can no longer be approved, nor typed."""
        for key in self.ledger.withdraw_all(self):
            self._close_card(key, "withdrawn", "the connection ended")
        for asked in self._asked.values():
            if asked.line is not None:
                asked.line.cancel()

    def _key(self, request_id: str) -> str:
        return f"{self.asking.session}/{request_id}"

    def admit(self, request: ApprovalRequest) -> None:
        """Take it in. Raises Rejected, and then nothing was taken."""
        key = self._key(request.id)
        if request.kind != "send" and self.asking.look_up(request.terminal_id) != "unknown":
            raise Rejected("duplicate_id", f"There is a terminal {request.terminal_id!r} already.")
        life_s = request.deadline_ms / 1000
        try:
            self.ledger.open(key, self, life_s)
        except DuplicateId:
            raise Rejected("duplicate_id", f"The request id {request.id!r} was used before.") from None
        except QueueFull:
            limit = self.ledger.max_pending
            raise Rejected("queue_full", f"{limit} requests wait for the person already.", max_pending=limit) from None
        expiry = Expiry(self.ledger, key, life_s, lambda: self._settle(request, Settled("expired", reason=REASON)))
        self._asked[key] = _Asked(request, expiry)
        self.asking.spawn(self._present(request, key), "approval-present")

    def _session_of(self, request: ApprovalRequest) -> str:
        return f"{self.asking.session}/{request.asker.caller}"

    async def _resolve(self, request: ApprovalRequest, argv: tuple[str, ...] | None = None) -> Evidence:
        session = self._session_of(request)
        if request.kind == "send":
            state = self.asking.look_up(request.terminal_id)
            if state == "unknown":
                raise CannotRun("unknown_terminal", f"There is no terminal {request.terminal_id!r}.")
            if state == "ended":
                raise CannotRun("terminal_ended", f"The program in terminal {request.terminal_id!r} has ended.")
            text = request.command if argv is None else " ".join(argv)
            return resolve_typing(text, request.terminal_id, session)
        if request.kind == "hidden":
            return resolve_hidden(request.command, request.title or "", session)
        if request.kind == "hook":
            return await asyncio.to_thread(resolve_hook, request.command, request.cwd or "/", session)
        words = argv or tuple(request.argv) or tuple(self.end.shell())
        cwd = request.cwd or self.end.default_cwd()
        held = await self.end.find_sandbox() if request.leaves is None else None
        base = self.end.base_environment()
        return await asyncio.to_thread(resolve, words, cwd, request.env, base, session, held, request.leaves)

    async def _present(self, request: ApprovalRequest, key: str) -> None:
        """Resolve, judge, and then run at once, show, or refuse."""
        try:
            evidence = await self._resolve(request)
            # No rule speaks of what is typed at a hidden prompt: it is no command.
            judged = Judgement("ask") if request.kind == "hidden" else self.end.judge(request, evidence)
            judgement = take_stricter(request, judged)
        except CannotRun as problem:
            self._refuse(request, key, problem.code, problem.message)
            return
        except Exception:
            log.exception("%s: a request could not be judged, trace %s", self.asking.name, request.trace_id)
            self._refuse(request, key, "internal", "The request could not be judged.")
            return
        if judgement.effect == "refuse":
            self._refuse(request, key, "forbidden", "; ".join(judgement.reasons) or "The desktop's policy forbids it.")
            return
        asked = self._asked.get(key)
        if asked is None:  # settled while it was being resolved
            return
        pending = Pending(
            request,
            evidence,
            judgement,
            self.asking.name,
            lambda: asked.expiry.left_s,
            self._answered,
            lambda: self.ledger.state(key),
            self.asking.trail,
        )
        if judgement.effect == "allow":
            if self.ledger.claim(key):
                self._spawn_start(pending, Decided(True, "rule", judgement.rule or "policy", "policy"))
        elif "session" in list_scopes(pending) and self.ledger.is_granted(evidence.binding):
            if self.ledger.claim(key):
                self._spawn_start(pending, Decided(True, "session", "person", "policy"))
        else:
            asked.card = pending
            self.end.request_arrived(pending)
            if self._asked.get(key) is asked:  # not answered in that very moment
                self.asking.take_card(make_card(pending, self.end))

    def _spawn_start(self, pending: Pending, decided: Decided) -> None:
        self.asking.spawn(self._start(pending, decided), "approval-start")

    def find_card(self, request_id: str) -> Pending | None:
        """The card of a request that is in front of the person."""
        asked = self._asked.get(self._key(request_id))
        return asked.card if asked is not None else None

    def find_state(self, request_id: str) -> State | None:
        return self.ledger.state(self._key(request_id))

    def _answered(self, pending: Pending, decided: Decided) -> bool:
        """From any thread: the state changes here and now, the rest happens on the loop."""
        key = self._key(pending.request.id)
        if not decided.yes:
            counted = self.ledger.decline(key)
            if counted:
                self._later(lambda: self._declined(pending, decided))
            return counted
        if not self.ledger.claim(key):
            return False
        return self._later(lambda: self._spawn_start(pending, decided))

    def _later(self, work: Callable[[], None]) -> bool:
        try:
            self.loop.call_soon_threadsafe(work)
        except RuntimeError:  # the loop ended under a window that is still open
            return False
        return True

    def _declined(self, pending: Pending, decided: Decided) -> None:
        self._settle(
            pending.request,
            Settled("declined", by=decided.by, where=decided.where, reason=decided.reason, evidence=pending.evidence),
        )

    async def _start(self, pending: Pending, decided: Decided) -> None:
        """Check once more that it is what was shown, pass the point of no return, run, and say so."""
        request, key = pending.request, self._key(pending.request.id)
        try:
            evidence = await self._resolve(request, decided.argv)
        except CannotRun as problem:
            self._refuse(request, key, problem.code, problem.message)
            return
        if decided.argv is not None and request.leaves is not None:
            self._refuse(request, key, "changed", "A command that leaves its sandbox runs as it was shown.")
            return
        if decided.argv is not None:
            judgement = self.end.judge(request.model_copy(update={"argv": list(decided.argv)}), evidence)
            if judgement.effect == "refuse" or judgement.risk == "irrecoverable":
                self._refuse(request, key, "forbidden", "The edited command is forbidden by the desktop's policy.")
                return
        elif evidence.binding != pending.evidence.binding:
            self._refuse(request, key, "changed", "What would run is no longer what was shown.")
            return
        if not self.ledger.start(key):  # withdrawn meanwhile; that has been answered
            return
        opened = False
        size: tuple[int, int] | None = None
        try:
            if request.kind == "send":
                await self._type(request, evidence.argv[0])
            elif request.kind in ("run", "open"):  # the others are done by the asking side, when it hears of this
                sink = self.asking.open_terminal(request)
                opened = True
                size = await self.end.run(_order(request, evidence), sink)
        except Exception as problem:
            if opened:
                self.asking.forget_terminal(request)
            if not isinstance(problem, StartFailed):
                log.exception("%s: could not start, trace %s", self.asking.name, request.trace_id)
            asked = self._asked.get(key)
            if asked is not None and asked.taken_back is not None:
                self._settle(request, Settled("withdrawn", reason=asked.taken_back, evidence=evidence))
                return
            failed = problem if isinstance(problem, StartFailed) else StartFailed("It could not be started.")
            self._settle(request, Settled("refused", code=failed.code, reason=failed.message, evidence=evidence))
            return
        if decided.scope == "session" and decided.argv is None:
            self.ledger.grant(evidence.binding, self.grant_life_s)
        rows, cols = size if size is not None else (None, None)
        self._settle(
            request,
            Settled(
                "approved",
                scope=decided.scope,
                by=decided.by,
                where=decided.where,
                evidence=evidence,
                edited=decided.argv is not None,
                rows=rows,
                cols=cols,
            ),
        )
        if opened:
            self.asking.take_start(request)

    async def _type(self, request: ApprovalRequest, text: str) -> None:
        """Returns once the line is typed; its outcome is told later. Raises StartFailed."""
        asked = self._asked.get(self._key(request.id))
        since = asked.expiry.since if asked is not None else time.monotonic()
        wait_s = _LINE_WAIT_S
        if request.wait_ms is not None:
            wait_s = max(_LINE_WAIT_S, since + request.wait_ms / 1000 - time.monotonic())
        typed: asyncio.Future[None] = self.loop.create_future()

        def note() -> None:
            if asked is not None:
                asked.line = None
            if not typed.done():
                typed.set_result(None)

        async def follow() -> None:
            try:
                line = await self.end.type_line(request.terminal_id, text, wait_s, note)
            except Exception as problem:
                if typed.done():
                    log.exception("%s: a line was lost, trace %s", self.asking.name, request.trace_id)
                else:
                    typed.set_exception(problem)
                return
            note()
            self.asking.take_line(request, line)
            if not line.has_ended:
                later = await self.end.await_line(request.terminal_id, line)
                if later is not None:
                    self.asking.take_line(request, later)

        def end(task: asyncio.Task[None]) -> None:  # also where it was cancelled before its first step
            if not typed.done():
                typed.set_exception(StartFailed("The connection ended before it was typed."))

        line = self.asking.spawn(follow(), "approval-line")
        line.add_done_callback(end)
        if asked is not None:
            asked.line = line
        await typed

    def withdraw(self, request_id: str, reason: str) -> None:
        """Take it back, if it is not settled; its end is told either way. Raises Rejected if it is not known."""
        key = self._key(request_id)
        state, asked = self.ledger.state(key), self._asked.get(key)
        if state is None or (asked is None and state in ("pending", "claimed")):  # that of another connection
            raise Rejected("unknown_request", f"No request {request_id!r}.")
        if reason == "timeout" and asked is not None and asked.expiry.end():
            return
        if asked is not None and self.ledger.withdraw(key):
            self._settle(asked.request, Settled("withdrawn", reason=reason))
        elif asked is not None and asked.line is not None and asked.taken_back is None:
            asked.taken_back = reason
            asked.line.cancel()  # `_start` tells what became of it: it may be typed in this very moment

    def _refuse(self, request: ApprovalRequest, key: str, code: str, reason: str) -> None:
        if self.ledger.refuse(key):
            self._settle(request, Settled("refused", code=code, reason=reason))

    def _settle(self, request: ApprovalRequest, settled: Settled) -> None:
        self.asking.take_end(request, settled)
        self._close_card(self._key(request.id), settled.outcome, settled.reason)

    def _close_card(self, key: str, outcome: Outcome, reason: str | None) -> None:
        asked = self._asked.pop(key, None)
        if asked is None:
            return
        asked.expiry.cancel()
        if asked.card is not None:
            try:
                self.end.request_closed(asked.card, outcome, reason)
            except Exception:
                log.exception("%s: a card could not be closed", self.asking.name)


def _order(request: ApprovalRequest, evidence: Evidence) -> Order:
    assert evidence.executable is not None
    assert request.kind in ("run", "open")
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
        sandbox=evidence.sandbox,
        leaves=request.leaves is not None,
    )
