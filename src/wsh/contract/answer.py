"""An owner's answer to a request, given at the page and handed on to the desktop that asks.

Nothing is decided here. The desktop holds the request and takes an answer only if its own setting permits it, the answer
names the evidence that was shown, and nobody was quicker. Who may answer is the door's question.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from wsh.bridge.frame import AnswerScope, PageAnswer
from wsh.contract.correlation import make_id
from wsh.contract.fault import ContractFault
from wsh.contract.gate import Gate
from wsh.contract.waiting import Waiting, WaitingRequests
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
from wsh.wire.jsonobject import JsonObject

SETTLE_S = 10.0
"""How long the desktop may take from an answer that counts to what became of it."""


@dataclass(frozen=True)
class Answer:
    """What the person said; `digest` names the evidence they saw, `argv` are the words they chose instead."""

    digest: str
    yes: bool
    by: str
    scope: AnswerScope = "once"
    reason: str | None = None
    argv: list[str] | None = None
    rule: str | None = None
    held: bool = field(default=False)


async def answer_request(waiting: WaitingRequests, gate: Gate, id: str, answer: Answer) -> Waiting:
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
                "trace_id": entry.frame.trace_id,
                "request_id": entry.frame.request_id,
                "session_id": entry.frame.session_id,
                "actor": answer.by,
                "outcome": "refused",
                "code": problem.code,
                "reason": problem.message,
            }
        )
        raise
    return entry


async def _hand_on(entry: Waiting, answer: Answer) -> None:
    frame = entry.frame
    if entry.state != "waiting":
        raise ApprovalSettled(frame.id, entry.state)
    if not entry.adapter.takes_answers:
        raise Refused(
            "The desktop program takes no answers from the page.",
            hint="Set approvals.web = true in the config of the user at the desktop, and start interactive-terminal anew.",
        )
    if entry.card is None:
        raise StateConflict("The request is not shown yet.", hint="Ask again in a moment, and answer what is shown.")
    if answer.digest != entry.card.binding:
        raise ApprovalChanged(frame.id, "The answer is for other evidence than what is shown.")
    sent = PageAnswer(
        id=make_id("an"),
        request=frame.id,
        trace_id=frame.trace_id,
        binding=answer.digest,
        yes=answer.yes,
        scope=answer.scope,
        by=answer.by,
        reason=answer.reason,
        argv=answer.argv,
        rule=answer.rule,
        held=answer.held,
    )
    try:
        await entry.adapter.answer(sent)
    except ContractFault as fault:
        raise _translate(frame.id, fault) from None
    try:
        async with asyncio.timeout(SETTLE_S):
            await entry.over.wait()
    except TimeoutError:
        raise StateConflict(
            "The answer counts, and the desktop has not said yet what became of the request.",
            hint="GET /approvals says it.",
        ) from None
    _check_end(entry)


def _check_end(entry: Waiting) -> None:
    """An answer that counted may still meet a caller that went away, or a command that is no longer what was shown."""
    if entry.state in {"approved", "declined"}:
        return
    decision = entry.decision
    if decision is not None and decision.code == "changed":
        raise ApprovalChanged(entry.frame.id, decision.reason or "What would run is no longer what was shown.")
    raise ApprovalSettled(entry.frame.id, entry.state, decision.reason if decision else None)


def _translate(id: str, fault: ContractFault) -> WshError:
    facts: JsonObject = dict(fault.details)
    match facts.get("bridge_error"):
        case "settled":
            return ApprovalSettled(id, str(facts.get("state", "settled")))
        case "unknown_request":
            return ApprovalNotFound(id)
        case "other_evidence":
            return ApprovalChanged(id, fault.message)
        case "not_held":
            return ConfirmationNeeded(id, str(facts.get("risk", "destructive")), list(facts.get("reasons", [])))
        case "answers_off" | "forbidden":
            return Refused(fault.message)
        case "bad_rule" | "scope_not_allowed" | "not_editable":
            return InvalidRequest(fault.message)
        case _:
            return StateConflict(
                "The desktop could not be reached, or did not say whether the answer counts.",
                hint="GET /approvals says what became of the request.",
            )
