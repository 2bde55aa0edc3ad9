"""An owner's answer to a request, handed on to the place that holds it: the window, or the queue in this server.

Nothing is decided here. That place takes an answer only if it names the evidence that was shown, was meant, and nobody was quicker.
Who may answer is the operation's question.
"""

from __future__ import annotations

import asyncio

from wsh.approval.answer import Answer, AnswerRefused
from wsh.contract.ask.pending import PendingRequest, PendingRequests
from wsh.contract.gate import Gate
from wsh.contract.reply.fault import ContractFault
from wsh.wire.error import (
    ApprovalChanged,
    ApprovalNotFound,
    ApprovalSettled,
    ConfirmationNeeded,
    InvalidRequest,
    Refused,
    StateConflict,
    WshError,
)

SETTLE_S = 10.0
"""How long the desktop may take from an answer that counts to what became of it."""


async def answer_request(waiting: PendingRequests, gate: Gate, id: str, answer: Answer) -> PendingRequest:
    """Let the answer count; the request as it then stands. Raises what kept it from counting, and leaves a trail of that."""
    entry = waiting.find(id)
    if entry is None:
        raise ApprovalNotFound(id)
    try:
        await _hand_on(entry, answer)
    except WshError as problem:
        gate.record(
            {
                "kind": "answer",
                "tool": "contract",
                "trace_id": entry.request.trace_id,
                "request_id": entry.request.request_id,
                "session_id": entry.request.session_id,
                "actor": answer.by,
                "outcome": "refused",
                "code": problem.code,
                "reason": problem.message,
            }
        )
        raise
    return entry


async def _hand_on(entry: PendingRequest, answer: Answer) -> None:
    request = entry.request
    if entry.state != "waiting":
        raise ApprovalSettled(request.id, entry.state)
    if not entry.adapter.knows("answer"):
        raise Refused(
            "The desktop program takes no answers from the server.",
            hint="Set approvals.server = true in the config of the user at the desktop, and start interactive-terminal anew.",
        )
    if entry.card is None:
        raise StateConflict("The request is not shown yet.", hint="Ask again in a moment, and answer what is shown.")
    if answer.digest != entry.card.binding:
        raise ApprovalChanged(request.id, "The answer is for other evidence than what is shown.")
    try:
        await entry.adapter.answer(request, answer)
    except AnswerRefused as refused:
        raise _translate(request.id, refused) from None
    except ContractFault:
        raise StateConflict(
            "The desktop could not be reached, or did not say whether the answer counts.",
            hint="GET /approvals says what became of the request.",
        ) from None
    try:
        async with asyncio.timeout(SETTLE_S):
            await entry.over.wait()
    except TimeoutError:
        raise StateConflict(
            "The answer counts, and the desktop has not said yet what became of the request.",
            hint="GET /approvals says it.",
        ) from None
    _check_end(entry)


def _check_end(entry: PendingRequest) -> None:
    """An accepted answer can still fail: the caller is gone, or the command is no longer what was shown."""
    if entry.state in {"approved", "declined"}:
        return
    decision = entry.decision
    if decision is not None and decision.code == "changed":
        raise ApprovalChanged(entry.request.id, decision.reason or "What would run is no longer what was shown.")
    raise ApprovalSettled(entry.request.id, entry.state, decision.reason if decision else None)


def _translate(id: str, refused: AnswerRefused) -> WshError:
    facts = refused.details
    match refused.code:
        case "settled":
            return ApprovalSettled(id, str(facts.get("state", "settled")))
        case "unknown_request":
            return ApprovalNotFound(id)
        case "other_evidence":
            return ApprovalChanged(id, refused.message)
        case "not_held":
            reasons = facts.get("reasons", [])
            told = [str(each) for each in reasons] if isinstance(reasons, list) else []
            return ConfirmationNeeded(id, str(facts.get("risk", "destructive")), told)
        case "bad_rule" | "scope_not_allowed" | "not_editable":
            return InvalidRequest(refused.message)
        case "answers_off" | "forbidden":
            return Refused(refused.message)
        case _:
            return StateConflict(refused.message, hint="GET /approvals says what became of the request.")
