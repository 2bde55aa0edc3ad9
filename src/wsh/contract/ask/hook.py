"""Whether another agent's host may run a command: rules answer what they cover, a card asks the rest, a deadline gives it back.

The host runs the command itself, in its own shell; nothing runs here. Whatever goes wrong, the answer is never "allow".
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from wsh.approval.judgement import make_badges
from wsh.approval.request import ApprovalRequest, Asker
from wsh.contract.ask.asked import AskedRequest
from wsh.contract.cleanup import finish_cleanup
from wsh.contract.gate import is_irrecoverable, list_risks
from wsh.contract.identity import make_question_identity
from wsh.contract.interactive import InteractiveRoute
from wsh.contract.request.correlation import Correlated, make_id
from wsh.git.unguarded import explain_unguarded
from wsh.policy import Effect, Mode, PolicyRequest, Verdict
from wsh.policy.audit import describe_decision
from wsh.policy.execute.launch import is_git
from wsh.policy.execute.place import canonical_cwd
from wsh.policy.explain import explain_request
from wsh.policy.verdict import Kind, Reason, RiskReason
from wsh.wire.caller import Caller

HookDecision: TypeAlias = Literal["allow", "deny", "ask"]


@dataclass(frozen=True)
class HookQuestion:
    """What a host asks. `client` and `note` are its own words."""

    client: str
    command: str
    cwd: str
    note: str | None = None


@dataclass(frozen=True)
class HookJudgement:
    """`ask`: neither rules nor a person have decided, so the host asks by itself."""

    decision: HookDecision
    reason: str
    rule: str | None = None
    approval_id: str | None = None


async def judge_question(
    route: InteractiveRoute, question: HookQuestion, caller: Caller, own_folders: Sequence[Path]
) -> tuple[HookJudgement, Verdict]:
    """What the rules say: allowed where a headless or an interactive rule allows it and git starts nothing of a repository's, denied where no person could allow it.

    The decision is in the trail before it is told. Raises OSError where it cannot be.
    """
    verdict = await asyncio.to_thread(_weigh, route, question, caller, own_folders)
    if verdict.effect is Effect.ALLOW:
        return HookJudgement("allow", verdict.message, verdict.rule), verdict
    if verdict.effect is Effect.DENY or is_irrecoverable(verdict):
        return HookJudgement("deny", verdict.message, verdict.rule), verdict
    return HookJudgement("ask", verdict.message), verdict


def _weigh(route: InteractiveRoute, question: HookQuestion, caller: Caller, own_folders: Sequence[Path]) -> Verdict:
    gate = route.gate
    policy = gate.source.current(caller.environ)
    cwd = canonical_cwd(question.cwd, "/")
    ids = Correlated(make_id("req"), make_id("trace"))
    for mode in (Mode.HEADLESS, Mode.INTERACTIVE):
        request = PolicyRequest(
            actor=f"{question.client}:{caller.id}",
            command=question.command,
            cwd=cwd,
            mode=mode,
            home=gate.home,
            now=time.time(),
        )
        verdict = explain_request(request, policy, own_folders)
        if verdict.effect is Effect.ALLOW:
            verdict = _mind_git(verdict, cwd)
            break
    gate.trail.append(
        describe_decision(
            request,
            verdict,
            trace_id=ids.trace_id,
            tool="hook",
            policy_digest=policy.digest,
            request_id=ids.request_id,
            session_id=None,
            role=caller.role,
            client=question.client,
        )
    )
    return verdict


def _mind_git(verdict: Verdict, cwd: str) -> Verdict:
    """A rule allows git as wsh runs it, guarded. The host runs git as it is, so a person decides where that starts what a repository names."""
    for argv in verdict.argv:
        if argv[:1] == ("cd",) and len(argv) == 2:
            cwd = os.path.join(cwd, os.path.expanduser(argv[1]))
        found = explain_unguarded(argv, cwd) if argv and is_git(argv) else None
        if found is not None:
            what = f"git may start a program here, outside wsh's guard: {found}"
            return replace(
                verdict,
                effect=Effect.ASK,
                reason=Reason.NOT_ALLOWLISTED,
                message=f"The rule {verdict.rule!r} does not cover it: {what}.",
                rule=None,
                risk_reasons=(*verdict.risk_reasons, RiskReason(verdict.risk, Kind.REPOSITORY, what)),
            )
    return verdict


async def ask_person(
    route: InteractiveRoute, question: HookQuestion, caller: Caller, verdict: Verdict, wait_s: float
) -> HookJudgement:
    """Show a card and wait for its answer. Cancelled, or when `wait_s` is over, the card is taken back."""
    if route.server is None or not route.server_enabled:
        return HookJudgement("ask", "Approvals are not answered at this server; `wsh approvals on` turns that on.")
    asked = _make_asked(route, question, caller, verdict, wait_s)
    await route.start(asked)
    try:
        await asyncio.wait({asked.task}, timeout=wait_s)
    except asyncio.CancelledError:
        await finish_cleanup(asked.withdraw("caller_gone"))
        raise
    if asked.is_pending:
        await asked.withdraw("timeout")
    decision, id = asked.decision, asked.request.id
    if asked.is_approved:
        assert decision is not None
        return HookJudgement("allow", f"Allowed once by {decision.by}.", approval_id=id)
    if decision is not None and decision.outcome == "declined":
        why = f": {decision.reason}" if decision.reason else "."
        return HookJudgement("deny", f"The user declined this command{why}", approval_id=id)
    return HookJudgement("ask", f"Nobody has answered: the request is {asked.outcome}.", approval_id=id)


def _make_asked(
    route: InteractiveRoute, question: HookQuestion, caller: Caller, verdict: Verdict, wait_s: float
) -> AskedRequest:
    ids = Correlated(make_id("req"), make_id("trace"))
    identity = make_question_identity(caller, ids.trace_id, question.command, question.cwd)
    assert identity.terminal_id is not None and route.server is not None
    life_ms = min(route.gate.approval_ms(caller, route.options.max_approval_ms), max(1, int(wait_s * 1000)))
    request = ApprovalRequest(
        id=make_id("br"),
        trace_id=ids.trace_id,
        request_id=ids.request_id,
        kind="hook",
        session_id=identity.session_id,
        terminal_id=identity.terminal_id,
        command=question.command,
        cwd=question.cwd,
        effect="ask",
        risk=verdict.risk.value,
        reasons=list_risks(verdict),
        rule=verdict.rule,
        asker=Asker(caller=caller.id, client=question.client),
        deadline_ms=life_ms,
        note=question.note,
        badges=list(make_badges(verdict)),
    )
    return AskedRequest(
        request, route.server, identity, None, verdict, caller, ids, False, route.waiting, route.end_question
    )
