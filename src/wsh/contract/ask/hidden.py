"""A person is asked whether an agent's text may be typed where a program hides what is typed.

The text itself is never here: the request says how long it is and which prompt it is meant for. The asking call types it.
"""

from __future__ import annotations

from dataclasses import dataclass

from wsh.approval.request import ApprovalRequest, Asker
from wsh.contract.adapters.base import RuntimeAdapter
from wsh.contract.ask.asked import AskedRequest
from wsh.contract.identity import make_question_identity
from wsh.contract.interactive import InteractiveRoute
from wsh.contract.reply.fault import ContractFault
from wsh.contract.request.correlation import Correlated, make_id
from wsh.contract.request.model import Runtime
from wsh.policy import Effect, Reason, Risk, Verdict
from wsh.wire.caller import Caller

_VERDICT = Verdict(Effect.ASK, Risk.NONE, Reason.ALLOWED, "The program hides what is typed: a person decides.")


@dataclass(frozen=True)
class HiddenQuestion:
    session: str
    program: str
    """The program in front, as its words."""
    line: str
    """Its last line: what it asks for."""
    length: int
    """Characters, Enter not counted."""

    def describe(self) -> str:
        many = (
            "an empty line" if not self.length else "1 character" if self.length == 1 else f"{self.length} characters"
        )
        return f"Type {many}, not shown, in session {self.session}. It asks: {self.line}"


async def ask_hidden(route: InteractiveRoute, question: HiddenQuestion, caller: Caller) -> AskedRequest | None:
    """Show a card, in the window if one is connected that knows how, else at this server. None if nobody can be asked."""
    adapter = await _find_adapter(route, caller)
    if adapter is None:
        return None
    ids = Correlated(make_id("req"), make_id("trace"))
    identity = make_question_identity(caller, ids.trace_id)
    assert identity.terminal_id is not None
    request = ApprovalRequest(
        id=make_id("br"),
        trace_id=ids.trace_id,
        request_id=ids.request_id,
        kind="hidden",
        session_id=identity.session_id,
        terminal_id=identity.terminal_id,
        command=question.describe(),
        title=question.session,
        effect="ask",
        reasons=[f"The program hides what is typed: {question.program or 'its name is not known'}"],
        asker=Asker(caller=caller.id, client=caller.client or None),
        deadline_ms=route.gate.approval_ms(caller, route.options.max_approval_ms),
    )
    asked = AskedRequest(
        request, adapter, identity, None, _VERDICT, caller, ids, False, route.waiting, route.end_question
    )
    await route.start(asked)
    return asked


async def _find_adapter(route: InteractiveRoute, caller: Caller) -> RuntimeAdapter | None:
    try:
        window = await route.pool.get(caller.environ, Runtime(), make_id("trace"), may_launch=False)
    except ContractFault:
        return route.server
    return window if window.knows("hidden") else route.server


def record_typing(route: InteractiveRoute, asked: AskedRequest, outcome: str) -> None:
    """What became of a yes: typed, or the prompt was gone by then."""
    route.gate.record(
        {
            "kind": "hidden_input",
            "tool": "session",
            "request": asked.request.id,
            "trace_id": asked.ids.trace_id,
            "request_id": asked.ids.request_id,
            "actor": asked.caller.id,
            "session": asked.request.title,
            "outcome": outcome,
        }
    )
