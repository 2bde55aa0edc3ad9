"""Permission hooks of other agents' hosts: may the host run this command? Asked by `wsh hook`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from wsh.operation.context import Context
from wsh.operation.operation import operation
from wsh.wire.model.base import Model, Shown

if TYPE_CHECKING:
    from wsh.contract.ask.hook import HookJudgement, HookQuestion


class HookParams(Model):
    """`command` as the host would run it in a shell, `cwd` where. `note` is what the agent says about it."""

    client: Annotated[str, Field(min_length=1, max_length=64)]
    command: Annotated[str, Field(min_length=1, max_length=100_000)]
    cwd: Annotated[str, Field(min_length=1, max_length=4096)]
    note: Annotated[str, Field(max_length=4096)] | None = None


class HookAsk(HookParams):
    wait_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    """How long a card may wait for its answer; at most the setting `hook.wait_ms`."""


class HookAnswer(Shown):
    decision: Literal["allow", "deny", "ask"]
    """`ask`: the host's own prompt decides."""
    reason: str
    rule: str | None
    """Of the policy, where one decided."""
    approval_id: str | None
    """The request under /approvals, where a person was asked."""


@operation(errors=("cwd_not_found",))
async def judge_hook(context: Context, params: HookParams) -> HookAnswer:
    """What the rules say of a command that a host would run; asks nobody."""
    from wsh.contract.ask.hook import judge_question

    contract = await context.rooms.contract.get()
    judged, _ = await judge_question(contract.interactive, _make_question(params), context.governed, _list_own(context))
    return _show(judged)


@operation(manner="waits", errors=("cwd_not_found",))
async def ask_hook(context: Context, params: HookAsk) -> HookAnswer:
    """The same, and where no rule decides, a card asks the person until the deadline."""
    from wsh.contract.ask.hook import ask_person, judge_question

    contract = await context.rooms.contract.get()
    question = _make_question(params)
    judged, verdict = await judge_question(contract.interactive, question, context.governed, _list_own(context))
    if judged.decision == "ask":
        longest = context.rooms.settings.get_int("hook.wait_ms")
        wait_s = min(params.wait_ms or longest, longest) / 1000
        judged = await ask_person(contract.interactive, question, context.governed, verdict, wait_s)
    return _show(judged)


def _make_question(params: HookParams) -> HookQuestion:
    from wsh.contract.ask.hook import HookQuestion

    return HookQuestion(params.client, params.command, params.cwd, params.note)


def _list_own(context: Context) -> tuple[Path, ...]:
    places = context.rooms.places
    return (places.config, places.runtime, places.state)


def _show(judged: HookJudgement) -> HookAnswer:
    return HookAnswer(decision=judged.decision, reason=judged.reason, rule=judged.rule, approval_id=judged.approval_id)
