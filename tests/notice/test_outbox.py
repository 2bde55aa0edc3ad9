"""What the outbox remembers where there is more than it may keep."""

from __future__ import annotations

import time
from pathlib import Path

from wsh.notice.outbox import Delivery, Notice, Outbox
from wsh.notice.rule import NoticeKind


def make(outbox: Outbox, id: str, kind: NoticeKind, state: str = "sent", since: float = 0.0) -> Notice:
    delivery = Delivery(state)  # type: ignore[arg-type]  # a word of the test's
    notice = Notice(outbox.next_seq(), id, kind, since, time.time(), "title", deliveries={"webhook": delivery})
    outbox.add(notice)
    return notice


def test_what_waits_or_is_to_be_sent_stays_while_messages_come_without_end(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox", 10)
    make(outbox, "request.1", "request")
    make(outbox, "told.due", "told", "due")
    make(outbox, "request.over", "request")
    outbox.end("request.over")
    for number in range(100):
        make(outbox, f"told.{number}", "told")
    assert list(outbox.notices) == ["request.1", "told.due", *(f"told.{number}" for number in range(92, 100))]


def test_the_outbox_is_bounded_also_where_all_of_it_waits(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox", 10)
    for number in range(100):
        make(outbox, f"request.{number}", "request")
    assert list(outbox.notices) == [f"request.{number}" for number in range(90, 100)]
    make(outbox, "told.1", "told")
    assert list(outbox.notices)[-1] == "told.1", "and the newest is there"


def test_only_ends_of_commands_here_decide_what_is_too_old_to_be_told(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox", 1)
    make(outbox, "command.a.1", "failed", since=100.0)
    make(outbox, "told.a.2", "told", since=300.0)
    make(outbox, "gpu1/command.b.1", "failed", since=400.0)  # by the clock of another machine
    make(outbox, "request.1", "request", since=500.0)
    assert outbox.floor == 100.0
