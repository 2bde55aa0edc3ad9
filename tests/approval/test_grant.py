"""How long a yes for the session holds."""

from __future__ import annotations

import random

import pytest

from tests.approval.test_race import RacePlace
from tests.support.bridge.talk import ask
from tests.support.waiting import until
from wsh.approval.answer import Answer, take_answer
from wsh.approval.judgement import Judgement
from wsh.approval.ledger import Ledger
from wsh.approval.queue import ApprovalQueue
from wsh.approval.request import Badge


@pytest.mark.parametrize(
    ("now", "is_asked"),
    [
        (Judgement("ask"), False),
        (Judgement("ask", "destructive", ("the policy says so now",)), True),
        (Judgement("ask", badges=(Badge(name="b", title="Sends", sentence="It sends.", hold=True),)), True),
    ],
)
async def test_a_yes_for_the_session_holds_only_while_the_policy_lets_it_reach_that_far(
    now: Judgement, is_asked: bool
) -> None:
    world = RacePlace(random.Random(1))
    queue = ApprovalQueue(world, Ledger(), world)
    first = ask("true")
    queue.admit(first)
    await until(lambda: first.id in world.pending, "the card")
    shown = world.pending[first.id]
    take_answer(shown, Answer(shown.evidence.binding, True, "ann", scope="session"), world)
    await until(lambda: first.id in world.ends, "its end")

    world.judgement = now
    again = ask("true")
    queue.admit(again)
    await until(lambda: again.id in world.pending or again.id in world.ends, "the card, or its end")
    assert (again.id in world.pending) is is_asked
    assert (again.id in world.ends) is not is_asked
    if is_asked:
        queue.withdraw(again.id, "cancelled")
