"""What becomes of a notice at one channel: it is sent once, also where the disk refuses to note it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.support.session.running import run
from tests.support.waiting import until
from wsh.notice.deliver import Courier, Send
from wsh.notice.outbox import Delivery, Notice, Outbox
from wsh.notice.post import Undelivered


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

    def refuse(text: bytes) -> None:
        if full:
            raise OSError(28, "No space left on device")
        write(text)

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
