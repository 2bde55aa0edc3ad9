"""For the person who approves: what waits, the card of each, an answer, and whether answers are taken here at all.

The place that holds a request decides whether an answer counts (the window, or the queue in this server); here it is only handed on. Never
with an agent's token, and never while the setting `approvals.server` is off.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.forward import Forwarding
from wsh.operation.operation import Json, operation
from wsh.wire.caller import Caller
from wsh.wire.error import ApprovalNotFound, InvalidRequest, Refused
from wsh.wire.model.base import Model, Shown

if TYPE_CHECKING:
    from wsh.approval.request import Where
    from wsh.contract.ask.pending import PendingRequest
    from wsh.contract.dispatch import Contract

SETTING = "approvals.server"
_NAMES = ("id", "session")
_TAIL_BYTES = 2 * 1024
_WHOLE_BYTES = 64 * 1024
_WITH_OUTPUT = 5
"""So many of the newest that ran are listed with what they print."""

Text = Annotated[str, Field(max_length=100_000)]


class AnswerBody(Model):
    """`digest` is the one shown with the request; `command` is what to run instead, in the words of a shell.

    With the scope always, `rule` is a pattern other than the exact words, and `headless` lets it hold in headless mode, too.
    """

    digest: Annotated[str, Field(min_length=1, max_length=200)]
    decision: Literal["approve", "decline"]
    scope: Literal["once", "session", "always"] | None = None
    rule: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    headless: bool | None = None
    command: Text | None = None
    confirm: bool | None = None
    reason: Annotated[str, Field(max_length=4096)] | None = None


class AnswerParams(AnswerBody):
    id: str


class ApprovalId(Model):
    id: str


class ApprovalMode(Shown):
    server: bool
    """Whether approvals are answered at this server, and wait and run here where no window is connected."""


@operation(who="owner", manner="reads", forwarding=Forwarding(names=_NAMES, joined="requests"))
async def list_approvals(context: Context) -> Annotated[Json, "`{requests, answered_in, server, now}`"]:
    """Requests that wait for a person, with their cards, and what became of the last ones."""
    contract = await context.rooms.contract.get()
    enabled = contract.interactive.server_enabled
    requests, ran = [], 0
    for entry in contract.interactive.waiting.list_entries():
        has_run = entry.state == "approved" and entry.request.kind in ("run", "open")
        ran += has_run
        tail = _TAIL_BYTES if has_run and ran <= _WITH_OUTPUT else 0
        requests.append(await _describe(contract, entry, tail))
    return {
        "requests": requests,
        "answered_in": ["interactive-terminal", *(["page", "shell"] if enabled else [])],
        "server": enabled,
        "now": time.time(),
    }


@operation(
    who="owner",
    manner="reads",
    errors=("approval_not_found",),
    forwarding=Forwarding(addresses=("id",), names=_NAMES),
)
async def get_approval(
    context: Context, params: ApprovalId
) -> Annotated[Json, "The request, with its output if it ran."]:
    """One of them."""
    contract = await context.rooms.contract.get()
    entry = contract.interactive.waiting.find(params.id)
    if entry is None:
        raise ApprovalNotFound(params.id)
    return await _describe(contract, entry, _WHOLE_BYTES)


@operation(
    who="owner",
    errors=("forbidden", "approval_not_found", "approval_settled", "approval_changed", "confirmation_needed"),
    forwarding=Forwarding(addresses=("id",), names=_NAMES),
)
async def answer_approval(context: Context, params: AnswerParams) -> Annotated[Json, "The request as it then stands."]:
    """Approve or decline one of them, where the setting approvals.server permits it."""
    from wsh.approval.answer import Answer, AnswerRefused, split_words
    from wsh.contract.ask.answer import answer_request

    contract = await context.rooms.contract.get()
    route = contract.interactive
    entry = route.waiting.find(params.id)
    # The owner may type at a hidden prompt in any case, so an answer there needs no setting.
    if not route.server_enabled and not (entry is not None and entry.request.kind == "hidden"):
        raise Refused(
            f"Approvals are not answered here: the setting {SETTING} is off.",
            hint="Answer in interactive-terminal, or turn it on with `wsh approvals on`.",
            setting=SETTING,
        )
    _check(params)
    try:
        argv = split_words(params.command) if params.command is not None else None
    except AnswerRefused as refused:
        raise InvalidRequest(refused.message, hint="Close every quote, or decline instead.") from None
    answer = Answer(
        digest=params.digest,
        yes=params.decision == "approve",
        by=describe_answerer(context.caller),
        where=find_where(context.caller),
        scope=params.scope or "once",
        reason=params.reason,
        argv=argv,
        rule=params.rule,
        headless=params.headless or False,
        held=params.confirm or False,
    )
    async with context.rooms.fleet.claim_answer(params.id, answer.by):
        entry = await answer_request(route.waiting, route.gate, params.id, answer)
    return await _describe(contract, entry, 0)


@operation(who="owner", manner="reads")
async def get_approval_mode(context: Context) -> ApprovalMode:
    """Whether approvals are answered at this server."""
    contract = await context.rooms.contract.get()
    return ApprovalMode(server=contract.interactive.server_enabled)


class SetApprovalMode(Model):
    server: bool


@operation(who="owner")
async def set_approval_mode(context: Context, params: SetApprovalMode) -> ApprovalMode:
    """Turn answering at this server on or off, until it ends; the setting holds for the next one."""
    contract = await context.rooms.contract.get()
    contract.interactive.server_enabled = params.server
    contract.interactive.gate.record(
        {
            "kind": "approvals_mode",
            "actor": describe_answerer(context.caller),
            "trace_id": None,
            "change": f"{SETTING} = {'true' if params.server else 'false'}",
        }
    )
    return ApprovalMode(server=params.server)


async def _describe(contract: Contract, entry: PendingRequest, output_bytes: int) -> Json:
    route = contract.interactive
    wire = entry.to_wire()
    wire["answerable"] = (route.server_enabled or entry.request.kind == "hidden") and entry.is_answerable
    if wire["run"] is not None:
        wire["run"]["session"] = route.find_session_name(entry)
        if output_bytes:
            wire["run"]["output"] = await route.read_tail(entry, output_bytes)
    return wire


def describe_answerer(caller: Caller) -> str:
    """Who answered and how that was proved, for the audit."""
    return f"{caller.name}:{'page' if caller.proof == 'cookie' else caller.proof}"


def find_where(caller: Caller) -> Where:
    match caller.proof:
        case "cookie" | "ticket":
            return "page"
        case "unix":
            return "shell"
        case "token":
            return "token"


def _check(body: AnswerBody) -> None:
    """No field is taken that means nothing beside the others."""
    given = {name for name in ("scope", "rule", "headless", "command", "confirm") if getattr(body, name) is not None}
    if body.decision == "decline" and given:
        raise InvalidRequest(f"{min(given)} has no meaning beside a decline.", hint="Send decision and reason alone.")
    if body.decision == "approve" and body.reason is not None:
        raise InvalidRequest("reason has no meaning beside an approval.", hint="It is for declining.")
    if body.scope != "always" and given & {"rule", "headless"}:
        raise InvalidRequest("rule and headless go with the scope always.", hint="Send the scope, or leave them out.")
    if body.command is not None and body.scope not in (None, "once"):
        raise InvalidRequest("A command that was edited is approved once.", hint="Leave the scope out.")
