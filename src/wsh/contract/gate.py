"""The one point where a request meets policy and leaves its trail, for both modes and every door."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.correlation import Correlated
from wsh.policy import Policy, PolicyRequest, Risk, Verdict, decide
from wsh.policy.audit import describe_decision
from wsh.wire.caller import Caller
from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.contract")


class PolicyReader(Protocol):
    """Where the policy comes from; asked anew for each decision, on behalf of a connection."""

    def current(self, environ: Mapping[str, str]) -> Policy: ...


class Trail(Protocol):
    """The audit. Raises OSError when an entry cannot be written."""

    def append(self, entry: Mapping[str, object]) -> object: ...


class Gate:
    """Decides and records. `lifetime_ms` is the setting that holds where the policy has none; 0 means no limit."""

    def __init__(self, source: PolicyReader, trail: Trail, *, home: str | None = None, lifetime_ms: int = 0) -> None:
        self.source = source
        self.trail = trail
        self.home = home
        self._lifetime_ms = lifetime_ms

    def weigh(self, question: PolicyRequest, caller: Caller) -> Verdict:
        """What the policy says; leaves no trail, so nothing may run because of it."""
        return decide(question, self.source.current(caller.environ))

    def decide(self, question: PolicyRequest, caller: Caller, ids: Correlated, session_id: str) -> Verdict:
        """The verdict, recorded before anything runs: a decision that leaves no trail is no decision."""
        policy = self.source.current(caller.environ)
        verdict = decide(question, policy)
        self.trail.append(
            describe_decision(
                question,
                verdict,
                trace_id=ids.trace_id,
                tool="contract",
                policy_digest=policy.digest,
                request_id=ids.request_id,
                session_id=session_id,
                role=caller.role,
                client=caller.client,
            )
        )
        return verdict

    def lifetime_ms(self, caller: Caller) -> int:
        """Longest life of a command."""
        return self.source.current(caller.environ).lifetime_ms or self._lifetime_ms

    def approval_ms(self, caller: Caller, longest_ms: int) -> int:
        """How long a person has to answer: what the policy says, and never longer than the setting."""
        return min(self.source.current(caller.environ).approval_ms or longest_ms, longest_ms)

    def find_sandbox(self, caller: Caller) -> str | None:
        """The name of the sandbox that agents get; None if they get none."""
        agents = self.source.current(caller.environ).sandbox.agents
        return None if agents is None else agents.name

    def record(self, entry: Mapping[str, object]) -> None:
        """What happened afterwards. A trail that cannot be written is told in the log; it undoes nothing."""
        try:
            self.trail.append(entry)
        except (OSError, ValueError):
            log.exception("an audit entry could not be written, trace %s", entry.get("trace_id"))


def list_risks(verdict: Verdict) -> list[str]:
    """The findings, as a person reads them."""
    return [f"{found.what} ({found.command})" if found.command else found.what for found in verdict.risk_reasons]


def is_irrecoverable(verdict: Verdict) -> bool:
    return verdict.risk is Risk.IRRECOVERABLE


def blocked(verdict: Verdict) -> ContractFault:
    details: JsonObject = {"reason": verdict.reason.value, "risk": verdict.risk.value}
    if verdict.rule is not None:
        details["rule"] = verdict.rule
    if verdict.risk_reasons:
        details["risk_reasons"] = [found.to_wire() for found in verdict.risk_reasons]
    if verdict.hint is not None:
        details["hint"] = verdict.hint
    return ContractFault("PM_TERM_BLOCKED_DESTRUCTIVE", verdict.message, **details)


def headless_verdict(verdict: Verdict) -> JsonObject:
    """What `details.headless_verdict` says."""
    return {
        "effect": verdict.effect.value,
        "reason": verdict.reason.value,
        "rule": verdict.rule,
        "message": verdict.message,
    }
