"""Answers that come over the bridge: they count once, for what was shown, and only where the desktop permits it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge.scripted import ScriptedDesktop, ignore, listening
from tests.support.bridge.talk import RawPeer, ask, connected
from tests.support.waiting import HANG_S, until
from wsh.approval.answer import Pending
from wsh.approval.evidence import Evidence
from wsh.approval.judgement import Judgement
from wsh.approval.request import ApprovalRequest
from wsh.bridge.client import BridgeClient
from wsh.bridge.endpoint import Endpoint
from wsh.bridge.fault import PeerError
from wsh.bridge.frame import CardFrame, Decision, PageAnswer, RequestFrame
from wsh.bridge.listener import BridgeListener, ListenerOptions

ON = ListenerOptions(port=0, page_answers=True)


@dataclass
class Asked:
    request: RequestFrame
    card: CardFrame
    decision: asyncio.Future[Decision]

    def answer(self, **changes: Any) -> PageAnswer:
        given: dict[str, Any] = {
            "id": f"an-{id(changes)}",
            "request": self.request.id,
            "trace_id": self.request.trace_id,
            "binding": self.card.binding,
            "yes": True,
            "by": "owner:page",
        }
        return PageAnswer(**given | changes)


async def show(client: BridgeClient, request: RequestFrame) -> Asked:
    cards: list[CardFrame] = []
    decision = client.submit(request, None, cards.append)
    await until(lambda: cards, "the card")
    return Asked(request, cards[0], decision)


@asynccontextmanager
async def page(
    desktop: ScriptedDesktop, options: ListenerOptions = ON
) -> AsyncIterator[tuple[BridgeClient, BridgeListener, Endpoint]]:
    async with listening(desktop, options) as (listener, endpoint), connected(endpoint) as client:
        yield client, listener, endpoint


async def refusal(client: BridgeClient, answer: PageAnswer) -> PeerError:
    with pytest.raises(PeerError) as caught:
        await client.answer(answer)
    return caught.value


def destructive(request: ApprovalRequest, evidence: Evidence) -> Judgement:
    if evidence.argv[0] == "dd":
        return Judgement("refuse", "irrecoverable", ["it overwrites a disk"])
    grave = evidence.argv[0] == "rm"
    return Judgement("ask", "destructive" if grave else "none", ["it deletes"] if grave else [])


async def test_a_card_shows_all_there_is_to_know_and_hides_nothing(tmp_path: Path) -> None:
    async with page(ScriptedDesktop(script=ignore, judgement=destructive)) as (client, _, _):
        asked = await show(client, ask("rm", "a\u202eb\x1b[2K", cwd=str(tmp_path), env={"LANG": "x y"}))
        card = asked.card
        assert card.argv == ["rm", "$'a\\u202eb\\e[2K'"]
        assert card.cwd == str(tmp_path) and card.env == ["LANG='x y'"]
        assert card.executable and card.executable.endswith("/rm") and len(card.executable_sha256 or "") == 64
        assert (card.risk, card.reasons, card.scopes) == ("destructive", ["it deletes"], ["once"])
        assert 0 < card.left_ms <= 10_000
        plain = (await show(client, ask("echo", "hi"))).card
        assert plain.scopes == ["once", "session", "always"] and plain.editable == "echo hi"
        assert plain.always is not None and plain.always.rule == "echo hi" and plain.policy_file
        opened = (await show(client, ask(kind="open"))).card
        assert opened.scopes == ["once"] and opened.editable is None and opened.always is None


async def test_a_yes_from_the_page_runs_it_and_says_who_gave_it() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop) as (client, _, _):
        asked = await show(client, ask("echo", "hi"))
        await client.answer(asked.answer())
        decision = await asyncio.wait_for(asked.decision, HANG_S)
        assert (decision.outcome, decision.scope) == ("approved", "once")
        assert decision.by == "owner:page via test server", "named by the desktop, so that it cannot pass for its own"
        assert [order.argv for order in desktop.orders] == [("echo", "hi")]


async def test_a_no_from_the_page_carries_its_reason() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop) as (client, _, _):
        asked = await show(client, ask("echo", "hi"))
        await client.answer(asked.answer(yes=False, reason="not on a Friday"))
        decision = await asyncio.wait_for(asked.decision, HANG_S)
        assert (decision.outcome, decision.reason) == ("declined", "not on a Friday") and not desktop.orders


async def test_without_the_desktops_own_permission_no_answer_counts() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop, ListenerOptions(port=0)) as (client, _, _):
        assert not client.knows("answer")
        asked = await show(client, ask("echo", "hi"))
        refused = await refusal(client, asked.answer())
        assert refused.code == "answers_off" and "approvals.server" in refused.message
        assert not asked.decision.done() and not desktop.orders


async def test_an_answer_counts_once_in_time_and_for_its_own_evidence() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop) as (client, _, _):
        one, other = await show(client, ask("echo", "1")), await show(client, ask("echo", "2"))
        assert (await refusal(client, one.answer(binding=other.card.binding))).code == "other_evidence"
        assert (await refusal(client, one.answer(binding=""))).code == "other_evidence"
        assert (await refusal(client, one.answer(request="nothing"))).code == "unknown_request"
        await client.answer(one.answer())
        assert (await refusal(client, one.answer())).code == "settled"
        assert (await refusal(client, one.answer(yes=False))).code == "settled"
        await one.decision
        late = await refusal(client, one.answer())
        assert late.code == "settled" and late.details["state"] == "started"
        client.withdraw(other.request, "cancelled")
        assert (await other.decision).outcome == "withdrawn"
        assert (await refusal(client, other.answer())).details["state"] == "withdrawn"
        brief = await show(client, ask("echo", "3", deadline_ms=150))
        assert (await brief.decision).outcome == "expired"
        assert (await refusal(client, brief.answer())).details["state"] == "expired"
        assert [order.argv[1] for order in desktop.orders] == ["1"]


async def test_what_destroys_is_approved_once_and_on_purpose() -> None:
    desktop = ScriptedDesktop(script=ignore, judgement=destructive)
    async with page(desktop) as (client, _, _):
        asked = await show(client, ask("rm", "-f", "/nowhere/at/all"))
        refused = await refusal(client, asked.answer())
        assert refused.code == "not_held" and refused.details["reasons"] == ["it deletes"]
        assert (await refusal(client, asked.answer(scope="session", held=True))).code == "scope_not_allowed"
        assert (await refusal(client, asked.answer(scope="always", rule="rm *", held=True))).code == (
            "scope_not_allowed"
        )
        assert not desktop.orders and not desktop.rules
        await client.answer(asked.answer(held=True))
        assert (await asked.decision).outcome == "approved"


async def test_edited_words_are_judged_anew_before_the_answer_is_used_up() -> None:
    desktop = ScriptedDesktop(script=ignore, judgement=destructive)
    async with page(desktop) as (client, _, _):
        asked = await show(client, ask("echo", "harmless"))
        assert (await refusal(client, asked.answer(argv=["dd", "of=/dev/sda"], held=True))).code == "forbidden"
        assert (await refusal(client, asked.answer(argv=["rm", "-f", "/nowhere"]))).code == "not_held"
        assert (await refusal(client, asked.answer(argv=["echo"], scope="session"))).code == "scope_not_allowed"
        await client.answer(asked.answer(argv=["echo", "other words"]))
        decision = await asked.decision
        assert decision.outcome == "approved" and decision.edited
        assert [order.argv for order in desktop.orders] == [("echo", "other words")]


async def test_a_session_yes_holds_for_the_same_command_and_always_writes_the_rule() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop) as (client, _, _):
        first = await show(client, ask("echo", "same"))
        await client.answer(first.answer(scope="session"))
        assert (await first.decision).scope == "session"
        assert (await client.submit(ask("echo", "same"))).outcome == "approved"
        other = await show(client, ask("echo", "other"))
        assert (await refusal(client, other.answer(scope="always", rule=""))).code == "bad_rule"
        assert not other.decision.done() and not desktop.rules
        await client.answer(other.answer(scope="always", rule="echo *"))
        assert (await other.decision).scope == "always"
        assert desktop.rules == [("echo *", "owner:page via test server")]


async def test_nobody_answers_for_another_server() -> None:
    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop) as (client, _, endpoint):
        asked = await show(client, ask("echo", "hi"))
        async with connected(endpoint, session="runtime-2") as stranger:
            assert (await refusal(stranger, asked.answer())).code == "unknown_request"
        assert not asked.decision.done() and not desktop.orders


async def test_a_server_that_knows_no_cards_gets_none() -> None:
    desktop = ScriptedDesktop()
    async with listening(desktop, ON) as (_, endpoint):
        old = await RawPeer.open(endpoint)
        ready = await old.hello(endpoint, capabilities=["run", "policy"])
        assert ready["type"] == "ready" and "answer" in ready["capabilities"]
        old.say(json.loads(ask("echo", "hi").model_dump_json(exclude_none=True)))
        assert (await old.hear())["type"] == "decision"
        await old.aclose()


def _decline(pending: Pending, counted: list[bool]) -> None:
    counted.append(pending.decline("window", by="window"))


async def test_of_two_answers_at_the_same_instant_exactly_one_wins() -> None:
    """The window answers from its thread while the page answers over the bridge, a hundred times."""

    desktop = ScriptedDesktop(script=ignore)
    async with page(desktop) as (client, _, _):
        winners: dict[str, int] = {"window": 0, "page": 0}
        for number in range(100):
            asked = await show(client, ask("true", str(number)))
            pending = desktop.arrived[-1]
            counted: list[bool] = []
            window = threading.Thread(target=_decline, args=(pending, counted))
            if number % 2:
                window.start()
            sent = asyncio.ensure_future(client.answer(asked.answer()))
            if not number % 2:
                await asyncio.sleep(0.0002 * (number % 7))
                window.start()
            (refused,) = await asyncio.gather(sent, return_exceptions=True)
            await asyncio.to_thread(window.join)
            assert refused is None or isinstance(refused, PeerError)
            assert refused is None or refused.code == "settled"
            by_page = refused is None
            assert by_page is not counted[0], "exactly one of them counted"
            decision = await asyncio.wait_for(asked.decision, HANG_S)
            assert decision.outcome == ("approved" if by_page else "declined")
            winners["page" if by_page else "window"] += 1
        assert len(desktop.orders) == winners["page"] and winners["window"]
