"""Which answers count. Window, page and command line all come here, so that none of them can be laxer than the others.

An answer counts if it names exactly the evidence that was shown, reaches no further than the card offers, was meant (`held`)
where the card asks for it, and comes first.
"""

from __future__ import annotations

import dataclasses
import hmac
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsh.approval.always import RuleChoice, find_folder
from wsh.approval.escape import escape_text
from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement
from wsh.approval.ledger import State
from wsh.approval.request import AnswerScope, ApprovalRequest, Scope, Where

if TYPE_CHECKING:
    from wsh.approval.approver import Approver


class AnswerRefused(Exception):
    """An answer does not count; nothing ran because of it, and the request is as it was. Only `rule_not_written` counts, without its rule."""

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


@dataclass(frozen=True)
class Answer:
    """What a person said. `digest` names the evidence they saw, `argv` are the words they chose instead."""

    digest: str
    yes: bool
    by: str
    where: Where = "window"
    scope: AnswerScope = "once"
    reason: str | None = None
    argv: Sequence[str] | None = None
    rule: str | None = None
    """With `always`: a pattern other than the exact words."""
    headless: bool = False
    """With `always`: the rule holds in headless mode, too."""
    held: bool = False


@dataclass(frozen=True)
class Decided:
    """An accepted answer, as the queue passes it on."""

    yes: bool
    scope: Scope
    by: str
    where: Where
    reason: str | None = None
    argv: tuple[str, ...] | None = None


@dataclass
class Pending:
    """A request in front of the person. Answered from any thread; the first answer counts."""

    request: ApprovalRequest
    evidence: Evidence
    judgement: Judgement
    client: str
    remaining: Callable[[], float] = field(repr=False)
    decide: Callable[[Pending, Decided], bool] = field(repr=False)
    state: Callable[[], State | None] = field(repr=False)
    trail: str = ""
    """The audit log in which the asking side records what becomes of it."""
    answered: Decided | None = None
    """Whose answer counted."""

    @property
    def remaining_s(self) -> float:
        """Time left to answer."""
        return max(0.0, self.remaining())

    def approve(self, *, scope: Scope = "once", by: str = "person", argv: Sequence[str] | None = None) -> bool:
        """Run it, whatever the card says; True if this counted. People's answers go through `take_answer`."""
        return self._give(Decided(True, scope, by, "window", None, tuple(argv) if argv is not None else None))

    def decline(self, reason: str | None = None, *, by: str = "person") -> bool:
        return self._give(Decided(False, "once", by, "window", reason))

    def _give(self, decided: Decided) -> bool:
        counted = self.decide(self, decided)
        if counted:
            self.answered = decided
        return counted


def list_scopes(pending: Pending) -> list[AnswerScope]:
    """How far a yes may reach: what must be held or leaves its sandbox is approved one at a time, and so is what is no command."""
    if pending.judgement.must_hold or pending.request.leaves is not None or pending.request.kind != "run":
        return ["once"]
    return ["once", "session", "always"]


def take_answer(pending: Pending, answer: Answer, end: Approver) -> None:
    """Let it count. Raises AnswerRefused with why it does not."""
    if not hmac.compare_digest(answer.digest.encode(), pending.evidence.binding.encode()):
        raise AnswerRefused("other_evidence", "The answer is for other evidence than what is shown.")
    if not answer.yes:
        _give(pending, Decided(False, "once", answer.by, answer.where, answer.reason or None))
        return
    if answer.scope not in list_scopes(pending):
        raise AnswerRefused("scope_not_allowed", f"This request can be approved once, not {answer.scope!r}.")
    if answer.argv is not None and answer.scope != "once":
        raise AnswerRefused("scope_not_allowed", "A command that was edited can be approved once only.")
    _check_meant(pending, answer, end)
    choice = _choose_rule(pending, answer, end) if answer.scope == "always" else None
    argv = tuple(answer.argv) if answer.argv is not None else None
    _give(pending, Decided(True, answer.scope, answer.by, answer.where, None, argv))
    if choice is not None:
        _write_rule(choice, pending, answer, end)


def _write_rule(choice: RuleChoice, pending: Pending, answer: Answer, end: Approver) -> None:
    try:
        end.write_rule(choice, pending, answer.by)
    except (OSError, ValueError) as problem:  # the disk, or a file that somebody has broken
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        message = f"It was approved this once; the rule was not written: {why}"
        raise AnswerRefused("rule_not_written", message) from None


def _give(pending: Pending, decided: Decided) -> None:
    if not pending._give(decided):
        raise too_late(pending.request.id, pending.state())


def _choose_rule(pending: Pending, answer: Answer, end: Approver) -> RuleChoice:
    proposal = end.propose_rule(pending)
    if answer.rule is not None:
        end.check_rule(answer.rule)
    if proposal is None:  # then no card offers it, whatever rule is named
        raise AnswerRefused("bad_rule", "No rule can stand for exactly these words; approve it once.")
    rule = answer.rule if answer.rule is not None else proposal.rule
    folder = find_folder(rule, pending.evidence.cwd)
    return RuleChoice(rule, exact=rule.strip() == proposal.rule, headless=answer.headless, cwd=folder)


def _check_meant(pending: Pending, answer: Answer, end: Approver) -> None:
    """What cannot be undone must have been held; edited words are judged anew, before they can use the answer up."""
    judgement = pending.judgement
    if answer.argv is not None:
        if pending.request.kind != "run":
            raise AnswerRefused("not_editable", "Only the words of a command can be edited.")
        if pending.request.leaves is not None:
            raise AnswerRefused("not_editable", "A command that leaves its sandbox runs as it is shown, or not at all.")
        if not answer.argv:
            raise AnswerRefused("not_editable", "The command is empty.")
        anew = judge_words(end, pending, answer.argv)
        if anew.effect == "refuse" or anew.risk == "irrecoverable":
            why = "; ".join(anew.reasons) or "it is denied"
            raise AnswerRefused("forbidden", f"The edited command is forbidden by the policy: {why}.")
        if not judgement.must_hold:
            judgement = anew
    if judgement.must_hold and not answer.held:
        told = [escape_text(reason) for reason in judgement.reasons]
        told += [badge.sentence for badge in judgement.badges if badge.hold]
        called = judgement.risk if judgement.risk != "none" else "hard to take back"
        message = f"It is {called}, so it must be confirmed on purpose."
        raise AnswerRefused("not_held", message, risk=judgement.risk, reasons=told)


def judge_words(end: Approver, pending: Pending, argv: Sequence[str]) -> Judgement:
    """What the policy of the place says of other words for the same request."""
    changed = pending.request.model_copy(update={"argv": list(argv)})
    return end.judge(changed, dataclasses.replace(pending.evidence, argv=tuple(argv)))


def split_words(text: str) -> list[str]:
    """A command as a person types it. Raises AnswerRefused."""
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise AnswerRefused("not_editable", f"The command cannot be read: {problem}.") from None
    if not words:
        raise AnswerRefused("not_editable", "The command is empty.")
    return words


def too_late(id: str, state: State | None) -> AnswerRefused:
    if state is None:
        return AnswerRefused("unknown_request", f"There is no request {id!r}.")
    said = "is not shown yet" if state == "pending" else f"was {_WORDS.get(state, state)} before the answer"
    return AnswerRefused("settled", f"The request {said}; nothing ran because of this answer.", state=state)


_WORDS = {"claimed": "approved", "started": "approved"}
