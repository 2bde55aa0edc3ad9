"""What the policies say of a request: the stricter of two counts, and the reasons of both are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from wsh.approval.escape import escape_text
from wsh.approval.evidence import Evidence
from wsh.approval.request import ApprovalRequest, Badge, EffectName, RiskName
from wsh.policy import Effect, Label, Mode, Policy, PolicyRequest, Risk, Verdict, decide

LEAVES = "leaves_sandbox"
"""The badge of a command that asks to run without its sandbox."""
_STRICTNESS = ("allow", "ask", "refuse")
_RISKS: tuple[RiskName, ...] = ("none", "destructive", "irrecoverable")
_EFFECTS: dict[Effect, EffectName] = {Effect.ALLOW: "allow", Effect.ASK: "ask", Effect.DENY: "refuse"}
_RISK_NAMES: dict[Risk, RiskName] = {
    Risk.NONE: "none",
    Risk.DESTRUCTIVE: "destructive",
    Risk.IRRECOVERABLE: "irrecoverable",
}


@dataclass(frozen=True)
class Judgement:
    """`allow` runs at once and visibly, `ask` shows a card, `refuse` ends the request."""

    effect: EffectName
    risk: RiskName = "none"
    reasons: Sequence[str] = ()
    rule: str | None = None
    badges: Sequence[Badge] = ()

    @property
    def must_hold(self) -> bool:
        """Whether a yes must be given on purpose: it cannot be undone, or leaves the machine."""
        return self.risk != "none" or any(badge.hold for badge in self.badges)


def take_stricter(request: ApprovalRequest, judged: Judgement) -> Judgement:
    """What the asking side claims can only make it stricter: a token in an agent's hands must not approve anything."""
    effect = max(request.effect, judged.effect, key=_STRICTNESS.index)
    risk = worse(request.risk, judged.risk)
    if risk == "irrecoverable":
        effect = "refuse"
    elif risk == "destructive" and effect == "allow":
        effect = "ask"
    reasons = [*judged.reasons, *(reason for reason in request.reasons if reason not in judged.reasons)]
    known = {badge.name for badge in judged.badges} | {LEAVES}
    claimed = [badge for badge in request.badges or () if badge.name not in known]
    badges = [*judged.badges, *map(_make_visible, claimed)]
    if request.leaves is not None:
        # No rule was written for that: a person decides each time.
        effect = max(effect, "ask", key=_STRICTNESS.index)
        badges = [_make_leaving_badge(request.leaves), *badges]
    return Judgement(effect, risk, reasons, judged.rule, badges)


def _make_visible(badge: Badge) -> Badge:
    """Escape the texts of a badge, since the side that asks wrote them."""
    return badge.model_copy(update={"title": escape_text(badge.title), "sentence": escape_text(badge.sentence)})


def _make_leaving_badge(profile: str) -> Badge:
    sentence = (
        f"It runs without the sandbox {escape_text(profile)!r}, with everything that you may read, change and reach."
    )
    return Badge(name=LEAVES, title="Leaves the sandbox", sentence=sentence, hold=True)


def worse(one: RiskName, other: RiskName) -> RiskName:
    return max(one, other, key=_RISKS.index)


def make_question(request: ApprovalRequest, evidence: Evidence, home: str) -> PolicyRequest:
    """What the policy is asked of the words that would run."""
    runs = request.kind == "run"
    return PolicyRequest(
        actor=request.asker.client or request.asker.caller,
        argv=evidence.argv if runs else None,
        command=None if runs else evidence.argv[0],
        cwd=evidence.cwd if request.kind in ("run", "hook") else None,
        env=dict(request.env),
        workspace=request.asker.workspace_id,
        caller_surface=request.asker.surface,
        mode=Mode.INTERACTIVE,
        home=home,
        now=time.time(),
    )


def judge(request: ApprovalRequest, evidence: Evidence, policy: Policy, home: str) -> Judgement:
    """What the policy of the place where it would run says."""
    if request.kind == "open":
        return Judgement("ask", reasons=("opens a terminal without a command",))
    return read_verdict(decide(make_question(request, evidence, home), policy))


def read_verdict(verdict: Verdict) -> Judgement:
    reasons = tuple(reason.what for reason in verdict.risk_reasons) or (verdict.message,)
    return Judgement(_EFFECTS[verdict.effect], _RISK_NAMES[verdict.risk], reasons, verdict.rule, make_badges(verdict))


def make_badges(verdict: Verdict) -> tuple[Badge, ...]:
    """One badge for each label that applies, with the sentence of its first finding."""
    first = {found.label: found for found in reversed(verdict.labels)}
    return tuple(
        Badge(name=label.value, title=label.spoken, sentence=escape_text(first[label].what), hold=label.wants_hold)
        for label in Label
        if label in first
    )
