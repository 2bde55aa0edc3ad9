"""For the person who approves: what waits, what the desktop shows of it, and, where the user permits it, an answer.

The desktop program decides and runs; an answer is only handed on to it. Never with an agent's token, never while the
setting `approvals.web` is off.
"""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import Json, operation
from wsh.wire.caller import Caller
from wsh.wire.error import InvalidRequest, Refused
from wsh.wire.model import Model

SETTING = "approvals.web"

Text = Annotated[str, Field(max_length=100_000)]


class AnswerBody(Model):
    """`digest` is the one shown with the request; `command` is what to run instead, in the words of a shell."""

    digest: Annotated[str, Field(min_length=1, max_length=200)]
    decision: Literal["approve", "decline"]
    scope: Literal["once", "session", "always"] | None = None
    rule: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    command: Text | None = None
    confirm: bool | None = None
    reason: Annotated[str, Field(max_length=4096)] | None = None


class AnswerParams(AnswerBody):
    id: str


@operation(who="owner", manner="reads")
async def list_approvals(context: Context) -> Annotated[Json, "`{requests, answered_in}`"]:
    """Requests that wait for a person at the desktop program, with the evidence, and what became of the last ones."""
    contract = await context.rooms.contract.get()
    enabled = context.rooms.settings.get_bool(SETTING)
    return {
        "requests": [
            {**entry.to_wire(), "answerable": enabled and entry.is_answerable}
            for entry in contract.interactive.waiting.list_entries()
        ],
        "answered_in": ["interactive-terminal", *(["page"] if enabled else [])],
    }


@operation(
    who="owner",
    errors=("forbidden", "approval_not_found", "approval_settled", "approval_changed", "confirmation_needed"),
)
async def answer_approval(context: Context, params: AnswerParams) -> Annotated[Json, "The request as it then stands."]:
    """Approve or decline one of them, where the setting approvals.web permits it."""
    from wsh.contract.answer import Answer, answer_request

    if not context.rooms.settings.get_bool(SETTING):
        raise Refused(
            f"Approvals are not answered here: the setting {SETTING} is off.",
            hint=f"Answer in interactive-terminal, or set {SETTING} = true in config.toml and restart server and window.",
            setting=SETTING,
        )
    _check(params)
    contract = await context.rooms.contract.get()
    route = contract.interactive
    answer = Answer(
        digest=params.digest,
        yes=params.decision == "approve",
        by=describe_answerer(context.caller),
        scope=params.scope or "once",
        reason=params.reason,
        argv=_split(params.command) if params.command is not None else None,
        rule=params.rule,
        held=params.confirm or False,
    )
    entry = await answer_request(route.waiting, route.gate, params.id, answer)
    return {**entry.to_wire(), "answerable": False}


def describe_answerer(caller: Caller) -> str:
    """Who answered and how that was proved, for the audit."""
    return f"{caller.name}:{'page' if caller.proof == 'cookie' else caller.proof}"


def _check(body: AnswerBody) -> None:
    """No field is taken that means nothing beside the others."""
    given = {name for name in ("scope", "rule", "command", "confirm") if getattr(body, name) is not None}
    if body.decision == "decline" and given:
        raise InvalidRequest(f"{min(given)} has no meaning beside a decline.", hint="Send decision and reason alone.")
    if body.decision == "approve" and body.reason is not None:
        raise InvalidRequest("reason has no meaning beside an approval.", hint="It is for declining.")
    if (body.scope == "always") != (body.rule is not None):
        raise InvalidRequest("rule and the scope always belong together.", hint="Send the rule that is to be written.")
    if body.command is not None and body.scope not in (None, "once"):
        raise InvalidRequest("A command that was edited is approved once.", hint="Leave the scope out.")


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise InvalidRequest(f"command cannot be read: {problem}.", hint="Close every quote.") from None
    if not words:
        raise InvalidRequest("command is empty.", hint="Decline instead, or leave it out.")
    return words
