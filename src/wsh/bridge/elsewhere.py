"""Answers that a person gave elsewhere, at a server's page: what they are shown there, and what lets an answer count.

The desktop stays the judge. Its own setting must permit it, the answer must name exactly the evidence that was shown, and
the first answer wins, wherever it was given. What destroys something counts only if it was meant: `held`.
"""

from __future__ import annotations

import dataclasses
import hmac
import logging
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wsh.bridge.desktop import AnswerRefused, DesktopEnd, Judgement, Pending
from wsh.bridge.escape import escape_text
from wsh.bridge.frame import Answered, AnswerScope, Card, Error, PageAnswer

if TYPE_CHECKING:
    from wsh.bridge.peer import Peer

log = logging.getLogger("wsh.bridge")


def list_scopes(pending: Pending) -> list[AnswerScope]:
    """How far a yes may reach: a destructive command is approved one at a time, and so is what is no command."""
    if pending.judgement.risk != "none" or pending.request.kind != "run":
        return ["once"]
    return ["once", "session", "always"]


def make_card(pending: Pending, end: DesktopEnd) -> Card:
    """The evidence as text to show: nothing in it is hidden."""
    request, evidence = pending.request, pending.evidence
    runs = request.kind == "run"
    return Card(
        id=request.id,
        trace_id=request.trace_id,
        argv=list(evidence.shown_argv),
        cwd=escape_text(evidence.cwd),
        executable=escape_text(evidence.executable) if evidence.executable is not None else None,
        executable_sha256=evidence.executable_sha256,
        env=list(evidence.shown_env),
        risk=pending.judgement.risk,
        reasons=[escape_text(reason) for reason in pending.judgement.reasons],
        rule=pending.judgement.rule,
        binding=evidence.binding,
        scopes=list_scopes(pending),
        editable=shlex.join(evidence.argv) if runs else None,
        always_rule=end.suggest_rule(pending) if runs else None,
        policy_file=end.policy_file() if runs else None,
        left_ms=int(pending.remaining_s * 1000),
    )


def take_answer(peer: Peer, answer: PageAnswer) -> None:
    """Let it count, or say why it does not."""
    try:
        _settle(peer, answer)
    except AnswerRefused as refused:
        peer.send(Error(code=refused.code, message=refused.message, reply_to=answer.id, details=refused.details))
    except Exception:
        log.exception("bridge %s: an answer failed, trace %s", peer.name, answer.trace_id)
        peer.send(Error(code="internal", message="The desktop could not take the answer.", reply_to=answer.id))
    else:
        peer.send(Answered(reply_to=answer.id, trace_id=answer.trace_id))


def _settle(peer: Peer, answer: PageAnswer) -> None:
    if not peer.listener.options.page_answers:
        raise AnswerRefused(
            "answers_off", "This desktop takes no answers from a page: its setting approvals.web is off."
        )
    pending = peer.docket.find_card(answer.request)
    if pending is None:
        raise _too_late(peer, answer)
    if not hmac.compare_digest(answer.binding.encode(), pending.evidence.binding.encode()):
        raise AnswerRefused("other_evidence", "The answer is for other evidence than what is shown.")
    # Named by us, so that no answer from elsewhere can pass for one given in the window.
    by = f"{answer.by} via {peer.name}"
    if not answer.yes:
        if not pending.decline(answer.reason or None, by=by):
            raise _too_late(peer, answer)
        return
    if answer.scope not in list_scopes(pending):
        raise AnswerRefused("scope_not_allowed", f"This request can be approved once, not {answer.scope!r}.")
    if answer.argv is not None and answer.scope != "once":
        raise AnswerRefused("scope_not_allowed", "A command that was edited can be approved once only.")
    _check_meant(peer, pending, answer)
    if answer.scope == "always":
        peer.listener.end.check_rule(answer.rule or "")
    if not pending.approve(scope=answer.scope, by=by, argv=answer.argv):
        raise _too_late(peer, answer)
    if answer.scope == "always":
        peer.listener.end.write_rule(answer.rule or "", pending, by)


def _check_meant(peer: Peer, pending: Pending, answer: PageAnswer) -> None:
    """What destroys must have been held; edited words are judged anew, before they can use the answer up."""
    judgement = pending.judgement
    if answer.argv is not None:
        if pending.request.kind != "run":
            raise AnswerRefused("not_editable", "Only the words of a command can be edited.")
        anew = judge_words(peer.listener.end, pending, answer.argv)
        if anew.effect == "refuse" or anew.risk == "irrecoverable":
            why = "; ".join(anew.reasons) or "it is denied"
            raise AnswerRefused("forbidden", f"The edited command is forbidden by the policy: {why}.")
        if judgement.risk == "none":
            judgement = anew
    if judgement.risk != "none" and not answer.held:
        reasons = [escape_text(reason) for reason in judgement.reasons]
        message = f"It is {judgement.risk}, so it must be confirmed on purpose."
        raise AnswerRefused("not_held", message, risk=judgement.risk, reasons=reasons)


def judge_words(end: DesktopEnd, pending: Pending, argv: Sequence[str]) -> Judgement:
    """What the desktop's policy says of other words for the same request."""
    changed = pending.request.model_copy(update={"argv": list(argv)})
    return end.judge(changed, dataclasses.replace(pending.evidence, argv=tuple(argv)))


def _too_late(peer: Peer, answer: PageAnswer) -> AnswerRefused:
    state = peer.docket.find_state(answer.request)
    if state is None:
        return AnswerRefused("unknown_request", f"There is no request {answer.request!r}.")
    said = "is not shown yet" if state == "pending" else f"was {_WORDS.get(state, state)} before the answer"
    return AnswerRefused("settled", f"The request {said}; nothing ran because of this answer.", state=state)


_WORDS = {"claimed": "approved", "started": "approved"}
