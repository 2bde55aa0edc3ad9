"""News of a screen: applied to the last sync they give the screen, however it changed; and they are made once."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.http.talk import Mirror
from tests.support.waiting import until
from wsh.http.ws.json import encode_event
from wsh.http.ws.sender import make_frame
from wsh.http.ws.subscription import Subscribe, Subscription
from wsh.session.event import Exited, Listeners, Output, Resized, ScreenModeChanged, SessionEvent
from wsh.session.session import Session
from wsh.terminal.terminal import Terminal
from wsh.visual.feed import LINES_PER_TICK, Feed, Feeds
from wsh.visual.stage_registry import StageRegistry
from wsh.visual.viewer.frame import PUT_OFF_S
from wsh.wire.model.base import Format
from wsh.wire.setting import Settings

CLOCK_STEP_S = 0.002
"""The loop counts in whole milliseconds."""


class Program:
    """As much of a session as a feed looks at, with a real terminal."""

    def __init__(self, rows: int = 6, cols: int = 20) -> None:
        self.sid = self.name = "p"
        self.rows, self.cols = rows, cols
        self.terminal = Terminal(rows, cols)
        self.listeners: Listeners[SessionEvent] = Listeners()
        self.generation = 0
        self.last_activity_ms = 0

    def print(self, data: bytes) -> None:
        alt = self.terminal.alt
        self.terminal.feed(data)
        self.terminal.take_events()
        if self.terminal.alt != alt:
            self.listeners.tell(ScreenModeChanged(self.terminal.alt))
        start, self.generation = self.generation, self.generation + len(data)
        self.listeners.tell(Output(start, self.generation))

    def resize(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.terminal.resize(rows, cols)
        self.listeners.tell(Resized(rows, cols))


class Reader:
    """A member that decodes what it is given."""

    def __init__(self, *events: str, named: bool = False) -> None:
        self.events = frozenset(events)
        self.named = named
        self.heard: list[dict[str, Any]] = []
        self.frames: list[bytes] = []

    def deliver(self, frames: bytes, count: int) -> None:
        self.frames.append(frames)
        decoded = decode(frames)
        assert len(decoded) == count
        self.heard += decoded

    def named_events(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.heard if event["event"] == name]


def decode(frames: bytes) -> list[dict[str, Any]]:
    found = []
    at = 0
    while at < len(frames):
        assert frames[at] == 0x81
        size, at = frames[at + 1], at + 2
        if size == 126:
            size, at = int.from_bytes(frames[at : at + 2]), at + 2
        elif size == 127:
            size, at = int.from_bytes(frames[at : at + 8]), at + 8
        found.append(json.loads(frames[at : at + size]))
        at += size
    return found


def set_up(program: Program) -> tuple[StageRegistry, Session]:
    return StageRegistry(Settings()), cast(Session, program)


printed = st.lists(
    st.one_of(
        st.text(alphabet="abcXYZ \u00e9\u6f22\u0301", max_size=30).map(str.encode),
        st.sampled_from(
            [
                b"\r\n",
                b"\n" * 7,
                b"\x1b[2J\x1b[H",
                b"\x1b[31mred\x1b[0m",
                b"\x1b[?25l",
                b"\x1b[?25h",
                b"\x1b[?1049h",
                b"\x1b[?1049l",
                b"\x1b[3J",
                b"\x1bc",
                b"\x1b[5;3H*",
                b"\x1b[1;3r\x1b[3;1H\n\n\x1b[r",
                b"\x1b[L",
                b"\x1b[M",
                b"\x1b[K",
                b"\t",
                b"\x08",
                b"\x1b[7m\x1b[4mx",
                b"\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\",
            ]
        ),
        st.binary(max_size=8),
    ),
    max_size=8,
).map(b"".join)
steps = st.lists(st.one_of(printed, st.tuples(st.integers(1, 12), st.integers(1, 30))), max_size=12)


@settings(max_examples=150, deadline=None)
@given(steps, st.sampled_from(["styled", "plain"]), st.data())
async def test_differences_applied_to_the_last_sync_give_the_screen(
    happened: list[Any], format: Any, data: Any
) -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, format, 0)
    reader, mirror = Reader("diffs"), Mirror()
    feed.join(reader)
    mirror.take(feed.sync())
    for step in happened:
        if isinstance(step, bytes):
            program.print(step)
        else:
            stages.of(session).resize(*step)
        if data.draw(st.booleans()):
            feed._tick()
    feed._tick()
    for event in reader.heard:
        mirror.take(event)
    assert mirror.screen == json.loads(json.dumps(stages.read_screen(session, format)))
    feed.leave(reader)
    program.terminal.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(alphabet="abc", max_size=15), max_size=12), max_size=6))
async def test_line_events_tell_every_line_in_its_last_form(batches: list[list[str]]) -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 0)
    reader = Reader("lines")
    feed.join(reader)
    for batch in batches:
        for line in batch:
            program.print(line.encode() + b"\r\n")
        feed._tick()
    for _ in range(3):
        feed._tick()
    told: dict[int, str] = {event["index"]: event["line"] for event in reader.named_events("line")}
    lines = [line for batch in batches for line in batch]
    for index, line in enumerate(lines):
        assert told.get(index, "") == line, (index, told)
    feed.leave(reader)
    program.terminal.close()


async def test_one_frame_is_made_for_all_members_of_a_kind() -> None:
    program = Program()
    stages, session = set_up(program)
    feeds = Feeds(stages, encode_event)
    readers = [Reader("diffs") for _ in range(5)]
    named = Reader("diffs", named=True)
    joined = [feeds.join(session, "styled", 20, reader) for reader in [*readers, named]]
    assert len({id(feed) for feed in joined}) == 1
    program.print(b"hello")
    await until(lambda: named.heard and all(reader.frames for reader in readers), "the news")
    assert len({id(reader.frames[0]) for reader in readers}) == 1
    assert named.heard[0]["session"] == "p" and "session" not in readers[0].heard[0]
    for reader in [*readers, named]:
        feeds.leave(joined[0], 20, reader)
    assert feeds._feeds == {} and program.listeners.in_order and joined[0]._stops == []
    program.terminal.close()


async def test_news_is_coalesced_at_the_interval_and_the_first_comes_at_once() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 100)
    reader = Reader("diffs")
    feed.join(reader)
    program.print(b"x")
    # What is due at once has no time of its own in this loop.
    assert feed._timer is not None and not hasattr(feed._timer, "when")
    await until(lambda: reader.heard, "the first news")
    for _ in range(10):
        program.print(b"y")
    assert len(reader.named_events("diff")) == 1
    assert feed._timer is not None
    if hasattr(feed._timer, "when"):
        assert feed._timer.when() - feed._told_at == pytest.approx(0.1, abs=CLOCK_STEP_S)
    else:  # a busy machine took all of that time for the lines above
        assert asyncio.get_running_loop().time() - feed._told_at >= 0.1 - CLOCK_STEP_S
    await until(lambda: len(reader.heard) > 1, "the next news")
    assert [row["line"] for row in reader.heard[1]["rows"]] == ["x" + "y" * 10]
    feed.leave(reader)
    program.terminal.close()


async def test_a_moment_without_the_processor_does_not_put_off_the_next_news() -> None:
    program = Program()
    stages, session = set_up(program)
    look = stages.read_screen

    def look_after_a_while(session: Session, format: Format) -> dict[str, Any]:
        time.sleep(0.1)
        return look(session, format)

    stages.read_screen = look_after_a_while  # type: ignore[method-assign]
    feed = Feed(stages, encode_event, session, "plain", 50)
    feed.join(Reader("diffs"))
    program.print(b"x")
    feed._tick()
    assert feed._cost_s < 0.1, "a pause is not counted as work"
    feed.close()
    program.terminal.close()


async def test_news_that_cost_much_come_a_quarter_of_a_second_apart_at_most() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 50)
    feed.join(Reader("diffs"))
    feed._tick()
    feed._cost_s = 3.0
    program.print(b"x")
    assert feed._timer is not None and feed._timer.when() - feed._told_at == pytest.approx(PUT_OFF_S, abs=CLOCK_STEP_S)
    feed.close()
    program.terminal.close()


async def test_more_lines_than_can_be_told_are_a_lag_and_a_sync() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 0)
    reader = Reader("lines")
    feed.join(reader)
    program.print(b"".join(b"%d\r\n" % n for n in range(LINES_PER_TICK + 100)))
    feed._tick()
    names = [event["event"] for event in reader.heard]
    assert names[:2] == ["lagged", "sync"] and reader.heard[0]["skipped"] > 0
    program.terminal.close()


async def test_the_line_under_the_cursor_is_told_to_lines_when_it_has_settled() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 0)
    lines, chars = Reader("lines"), Reader("chars")
    feed.join(lines)
    feed.join(chars)
    for part in (b"a", b"b", b"c"):
        program.print(part)
        feed._tick()
    assert [event["line"] for event in chars.named_events("line")] == ["a", "ab", "abc"]
    assert lines.named_events("line") == []
    feed._tick()
    assert [event["line"] for event in lines.named_events("line")] == ["abc"]
    assert len(chars.named_events("line")) == 3
    program.terminal.close()


async def test_exit_is_told_after_the_last_news() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 10_000)
    reader = Reader("diffs", "exit")
    feed.join(reader)
    feed._tick()
    program.print(b"last words")
    program.listeners.tell(Exited(3, None))
    assert [event["event"] for event in reader.heard] == ["diff", "exit"]
    assert reader.heard[1]["exit_code"] == 3
    program.terminal.close()


async def test_a_last_line_without_an_end_is_told_before_the_exit() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 10_000)
    reader = Reader("lines", "exit")
    feed.join(reader)
    feed._tick()
    program.print(b"last words")
    program.listeners.tell(Exited(3, None))
    assert [event["event"] for event in reader.heard] == ["line", "exit"]
    assert reader.heard[0]["line"] == "last words" and feed._timer is None
    program.terminal.close()


def looks_again(feed: Feed) -> bool:
    return feed._timer is not None


async def test_a_feed_rests_when_who_waited_for_a_line_to_settle_has_left() -> None:
    program = Program()
    stages, session = set_up(program)
    feed = Feed(stages, encode_event, session, "plain", 0)
    lines, activity = Reader("lines"), Reader("activity")
    feed.join(lines)
    feed.join(activity)
    program.print(b"abc")
    feed._tick()
    assert looks_again(feed), "the line under the cursor is looked at once more"
    feed.leave(lines)
    feed._tick()
    assert not looks_again(feed)
    feed.close()
    program.terminal.close()


class FakeOutlet:
    """A connection whose reader can be made slow."""

    def __init__(self) -> None:
        self.buffered = 0
        self.is_open = True
        self.written: list[dict[str, Any]] = []

    def write(self, frames: bytes) -> None:
        self.written += decode(frames)


async def test_a_slow_client_is_told_what_it_missed_and_gets_a_sync_it_can_go_on_from() -> None:
    program = Program()
    stages, session = set_up(program)
    outlet = FakeOutlet()
    wanted = Subscribe(events=["diffs"], interval_ms=5, format="plain")
    feeds = Feeds(stages, encode_event)
    subscription = Subscription(stages, feeds, session, cast(Any, outlet), wanted, allowance=1 << 20, named=False)
    subscription.start()
    mirror = Mirror()
    outlet.buffered = 10**9
    for n in range(20):
        program.print(b"%d\r\n" % n)
        await asyncio.sleep(0.006)
    assert [event["event"] for event in outlet.written] == ["sync"]
    outlet.buffered = 0
    await until(lambda: len(outlet.written) >= 3, "what was missed", seen=lambda: outlet.written)
    program.print(b"and on")
    await until(lambda: "and on" in json.dumps(outlet.written), "the news after it", seen=lambda: outlet.written)
    assert [event["event"] for event in outlet.written[:3]] == ["sync", "lagged", "sync"]
    assert outlet.written[1]["skipped"] > 0
    for event in outlet.written:
        mirror.take(event)
    assert mirror.screen == json.loads(json.dumps(stages.read_screen(session, "plain")))
    subscription.close()
    program.terminal.close()


async def test_a_slow_client_hears_once_it_has_caught_up_that_the_program_fell_silent_and_ended() -> None:
    program = Program()
    stages, session = set_up(program)
    outlet = FakeOutlet()
    wanted = Subscribe(events=["diffs", "activity", "exit"], interval_ms=5, format="plain", idle_timeout_ms=20)
    feeds = Feeds(stages, encode_event)
    subscription = Subscription(stages, feeds, session, cast(Any, outlet), wanted, allowance=1 << 20, named=False)
    subscription.start()
    outlet.buffered = 10**9
    program.print(b"last words")
    program.last_activity_ms = 1000
    await until(lambda: subscription._is_idle, "the silence")
    program.listeners.tell(Exited(3, None))
    assert [event["event"] for event in outlet.written] == ["sync"]
    outlet.buffered = 0
    await until(lambda: len(outlet.written) >= 5, "what was missed", seen=lambda: outlet.written)
    assert [event["event"] for event in outlet.written[1:]] == ["lagged", "sync", "idle", "exit"]
    assert outlet.written[3]["screen"]["lines"][0] == "last words"
    assert (outlet.written[4]["exit_code"], outlet.written[4]["signal"]) == (3, None)
    outlet.buffered = 10**9
    program.last_activity_ms = 0
    program.print(b" and more")
    outlet.buffered = 0
    await until(lambda: len(outlet.written) >= 8, "what was missed then", seen=lambda: outlet.written)
    assert [event["event"] for event in outlet.written[5:]] == ["lagged", "sync", "running"], "the end is told once"
    subscription.close()
    program.terminal.close()


def test_frames_of_every_length_are_well_formed() -> None:
    for size in (0, 1, 125, 126, 127, 65535, 65536, 70000):
        text = json.dumps("x" * size).encode()
        assert list[Any](decode(make_frame(text))) == ["x" * size]
