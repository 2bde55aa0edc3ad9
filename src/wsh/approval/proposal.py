"""Rules of an "always": what a card may offer, and what an answer may name. The same for every place that approves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wsh.approval.always import Proposal, RuleChoice, find_folder, propose, would_allow
from wsh.approval.answer import AnswerRefused, Pending
from wsh.approval.judgement import make_question
from wsh.policy import Policy, RuleError, parse_pattern


def propose_for(pending: Pending, past: Iterable[Sequence[str]], policy: Policy, home: str) -> Proposal | None:
    """A rule that would let this request through; None if there is none to offer, or no file to write it to."""
    if policy.broken is not None:
        return None
    cwd = pending.evidence.cwd
    proposal = propose(pending.evidence.argv, past, cwd)
    if proposal is None:
        return None
    question = make_question(pending.request, pending.evidence, home)
    return (
        proposal
        if would_allow(question, policy, RuleChoice(proposal.rule, cwd=find_folder(proposal.rule, cwd)))
        else None
    )


def check_rule(pattern: str) -> None:
    """Raises AnswerRefused."""
    try:
        parse_pattern(pattern)
    except RuleError as problem:
        raise AnswerRefused("bad_rule", f"That cannot be a rule: {problem}") from None
