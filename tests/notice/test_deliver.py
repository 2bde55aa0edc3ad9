"""On the way of a notice from the outbox to a channel: what is written when, what is sent again and what is not."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from tests.support.session.running import run, settings_of
from tests.support.waiting import until
from wsh.notice.deliver import Courier, Send
from wsh.notice.notices import Notices
from wsh.notice.outbox import Delivery, Notice, Outbox
from wsh.notice.post import Undelivered
from wsh.wire.system.place import Places


def make(outbox: Outbox, delivery: Delivery | None = None) -> Notice:
    given = delivery or Delivery()
    notice = Notice(outbox.next_seq(), "told.1", "told", 0.0, time.time(), "title", deliveries={"webhook": given})
    outbox.add(notice)
    return notice


def make_courier(outbox: Outbox, send: Send, give_up_s: float = 3600.0) -> Courier:
    return Courier(
        outbox,
        {"webhook": send},
        lambda notice: False,
        lambda notice: True,
        retry_s=0.01,
        longest_retry_s=0.01,
        give_up_s=give_up_s,
    )


def test_what_was_sent_is_not_sent_again_where_the_disk_cannot_note_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = Outbox(tmp_path / "outbox", 10)
    write, full, sent = outbox._write, False, []

    def refuse(state: dict[str, object], kept: dict[str, Notice]) -> None:
        if full:
            raise OSError(28, "No space left on device")
        write(state, kept)

    async def send(notice: Notice) -> None:
        nonlocal full
        sent.append(notice.id)
        full = True

    async def main() -> None:
        nonlocal full
        monkeypatch.setattr(outbox, "_write", refuse)
        notice = make(outbox)
        courier = make_courier(outbox, send)
        courier.start()
        await until(lambda: sent, "the first try")
        await until(lambda: outbox.notices[notice.id].deliveries["webhook"].state != "sending", "its end")
        full = False
        courier.wake()
        await asyncio.sleep(0.1)  # several pauses between two tries
        await courier.aclose()
        assert sent == ["told.1"] and outbox.notices[notice.id].deliveries["webhook"].state == "sent"

    run(main())


def test_the_two_thousandth_try_is_one_as_any_other(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox", 10)

    async def send(notice: Notice) -> None:
        raise Undelivered("no connection", again=True)

    async def main() -> None:
        notice = make(outbox, Delivery(tries=2000))
        courier = make_courier(outbox, send)
        courier.start()
        await until(lambda: outbox.notices[notice.id].deliveries["webhook"].tries > 2001, "another try")
        await courier.aclose()

    run(main())


def test_what_comes_while_the_outbox_is_written_waits_in_one_place(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        notices = Notices(places, settings_of())
        write, go_on, writes = notices.outbox._write, threading.Event(), 0

        def hold(state: dict[str, object], kept: dict[str, Notice]) -> None:
            nonlocal writes
            writes += 1
            go_on.wait(60)
            write(state, kept)

        monkeypatch.setattr(notices.outbox, "_write", hold)
        for number in range(1000):
            notices.outbox.hear("sid", number)
            notices._found()
            await asyncio.sleep(0)
        assert len(notices._commits) == 1
        go_on.set()
        await notices.aclose()
        assert writes == 2 and not notices.outbox.is_changed

    run(main())
