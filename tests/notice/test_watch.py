"""The watch over sessions that are not as they were when somebody asked."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.session.running import open_quiet, run_with_registry
from tests.support.waiting import until
from wsh.notice import watch as watching
from wsh.notice.outbox import Outbox
from wsh.notice.rule import RuleBook
from wsh.notice.watch import FarNotice, NoticeWatch
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.state_word import StateWord
from wsh.wire.system.place import Places


def make_watch(places: Places, registry: SessionRegistry, outbox: Outbox, per_minute: int = 30) -> NoticeWatch:
    return NoticeWatch(
        registry,
        outbox,
        RuleBook(places.notify_file),
        keep_s=3600,
        present_s=0,
        per_minute=per_minute,
        is_there=lambda channel: channel in ("page", "webhook"),
        found=lambda: None,
        known=lambda: None,
    )


def test_an_answer_that_comes_late_puts_up_no_question_that_is_over(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, "sh")
        outbox = Outbox(places.outbox, 100)
        outbox.load()
        asked: list[asyncio.Future[StateWord]] = []

        async def ask(session: Session) -> StateWord:
            if len(asked) == 2:
                return "idle"
            asked.append(asyncio.get_running_loop().create_future())
            return await asked[-1]

        monkeypatch.setattr(watching, "find_word", ask)
        watch = make_watch(places, registry, outbox)
        watch.start()
        await until(lambda: asked, "the first look")
        watch._schedule(session, 0.0)
        await asyncio.sleep(0.05)
        if len(asked) == 2:  # the second one has overtaken it
            asked[1].set_result("idle")
            await asyncio.sleep(0.05)
        asked[0].set_result("asks")
        await until(lambda: len(asked) == 2, "the second look")
        if not asked[1].done():
            asked[1].set_result("idle")
        await until(lambda: not len(watch._tasks), "the looks to end")
        assert outbox.list_open(("asks",)) == []
        await watch.aclose()

    run_with_registry(places, work)


def test_each_session_of_another_machine_has_its_own_share(places: Places) -> None:
    def told(seq: int, session: str) -> FarNotice:
        return FarNotice(seq, f"told.{session}.{seq}", "told", 0.0, "ding", session, None, None, None, False)

    async def work(registry: SessionRegistry) -> None:
        outbox = Outbox(places.outbox, 100)
        watch = make_watch(places, registry, outbox, per_minute=2)
        watch.take_far("gpu1", [], 0)
        watch.take_far("gpu1", [*(told(number, "build") for number in (1, 2, 3)), told(4, "train")], 4)
        states = [one.deliveries["webhook"].state for one in outbox.notices.values()]
        assert states == ["due", "due", "held", "due"]

    run_with_registry(places, work)
