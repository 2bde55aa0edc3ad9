"""What a server that was killed left of its requests: those that wait are asked again, those that ran are followed, nothing runs twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from wsh.approval.expiry import REASON
from wsh.approval.request import Outcome
from wsh.bridge.frame import Decision
from wsh.contract.adapters.classify import refusal
from wsh.contract.adapters.server import ServerAdapter
from wsh.contract.ask.asked import AskedRequest
from wsh.contract.ask.kept import KeptRequest
from wsh.contract.ask.pending import PendingRequest
from wsh.contract.identity import Identity
from wsh.contract.interactive import InteractiveRoute
from wsh.contract.output.log import OutputLog
from wsh.contract.output.observer import Attached, OutputObserver
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.correlation import Correlated
from wsh.policy import Effect, Reason, Risk, Verdict

_GONE = "The agent's connection ended with the server that it asked; nothing ran."
_UNSTARTED = (
    "The server ended while this was being started, and no session of it is found. Look around before you ask again."
)


def restore_requests(route: InteractiveRoute, found: Iterable[KeptRequest], reconnect_s: float) -> None:
    """Needs the queue of this server, with all sessions restored."""
    assert route.server is not None
    waiting = [asked for kept in found if (asked := _restore(route, route.server, kept)) is not None]
    if any(_is_stdio(asked) for asked in waiting):
        asyncio.get_running_loop().call_later(reconnect_s, _withdraw_of_gone, route, waiting)


def _withdraw_of_gone(route: InteractiveRoute, waiting: list[AskedRequest]) -> None:
    for owner in {asked.caller.id for asked in waiting if _is_stdio(asked)}:
        if not route.is_connected(owner):
            route.caller_gone(owner)


def _is_stdio(asked: AskedRequest) -> bool:
    """Whether its caller comes back under the same name, if it is still there."""
    return not asked.keep and asked.caller.connection.startswith("stdio:")


def _restore(route: InteractiveRoute, server: ServerAdapter, kept: KeptRequest) -> AskedRequest | None:
    """The request, if it waits again."""
    asked = _make_asked(route, server, kept)
    try:
        route.registry.add(asked.identity)
    except ContractFault:
        pass  # too many run; the person sees it all the same
    if kept.state == "settled":
        _recall(route, server, asked, kept, kept.decision, is_new=False)
    elif kept.state == "starting":
        _recall(route, server, asked, kept, _decide(kept, "approved"), is_new=True)
    elif kept.left_ms <= 0:
        _recall(route, server, asked, kept, _decide(kept, "expired", REASON), is_new=True)
    elif not kept.keep and asked.caller.connection.startswith("mcp:"):
        _recall(route, server, asked, kept, _decide(kept, "withdrawn", _GONE), is_new=True)
    else:
        route.go_on(asked, kept.since)
        return asked
    return None


def _make_asked(route: InteractiveRoute, server: ServerAdapter, kept: KeptRequest) -> AskedRequest:
    request, caller = kept.request, kept.make_caller()
    if kept.state == "waiting":
        request = request.model_copy(update={"deadline_ms": max(1, kept.left_ms)})
    ids = Correlated(request.request_id, request.trace_id)
    identity = Identity(
        session_id=request.session_id,
        terminal_id=request.terminal_id,
        mode="interactive",
        owner=caller.id,
        workspace_id=kept.workspace_id,
        caller_surface=kept.surface,
        command=request.command or None,
        argv=(),
        cwd=request.cwd,
        trace_id=request.trace_id,
        started=kept.since,
        log=OutputLog(route.options.max_output_bytes),
        approval="pending",
        facts={} if kept.leaving is None else {"leaving": kept.leaving},
    )
    ear = OutputObserver(identity, lambda ended: None if kept.exited else route.record_exit(ended, caller, ids))
    why = "; ".join(request.reasons)
    verdict = Verdict(Effect.ASK, Risk(request.risk), Reason.NOT_ALLOWLISTED, why, rule=request.rule)
    asked = AskedRequest(
        request,
        server,
        identity,
        ear,
        verdict,
        caller,
        ids,
        kept.keep,
        route.waiting,
        route.settle,
        folder=route.folder,
    )
    identity.handle = Attached(server, ear, asked)
    return asked


def _recall(
    route: InteractiveRoute,
    server: ServerAdapter,
    asked: AskedRequest,
    kept: KeptRequest,
    decision: Decision | None,
    *,
    is_new: bool,
) -> None:
    """Shown among those that are over. `is_new`: an earlier server did not say so."""
    assert asked.ear is not None
    if decision is not None and decision.outcome == "approved":
        assert kept.sid is not None
        if not server.adopt(asked.request, asked.ear, kept.sid):
            if is_new:
                decision = _decide(kept, "refused", _UNSTARTED)
            else:
                asked.identity.warning = "Its session is gone; how it ended is not known."
                asked.identity.end(None)
    asked.decision = decision
    if decision is None:
        asked.fault = ContractFault("PM_TERM_DISCONNECTED", "The server ended before the request was answered.")
    elif decision.outcome != "approved":
        asked.fault = refusal(decision, asked.request.deadline_ms)
    state = asked.outcome if is_new else kept.outcome
    route.waiting.recall(
        PendingRequest(
            asked.request,
            server,
            asked.identity,
            kept.since,
            state=state,
            decision=decision,
            ended=time.time() if is_new else kept.ended,
        )
    )
    asked.task = asyncio.get_running_loop().create_task(asked.keep_end() if is_new else _nothing())
    route.settle(asked, is_new=is_new)


async def _nothing() -> None:
    pass


def _decide(kept: KeptRequest, outcome: Outcome, reason: str | None = None) -> Decision:
    request = kept.request
    return Decision(
        id=request.id,
        trace_id=request.trace_id,
        outcome=outcome,
        code="internal" if outcome == "refused" else None,
        reason=reason,
        session_id=request.session_id,
        terminal_id=request.terminal_id,
    )
