"""Lines out of bytes: in order, whole, bounded, and offered at once only where nothing waits before them."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsh.wire.line_feed import TURN_LINES, WAITING_BYTES, LineFeed


def make_feed(most_bytes: int | None = None) -> tuple[LineFeed, list[str]]:
    told: list[str] = []
    return LineFeed(
        pause=lambda: told.append("pause"), resume=lambda: told.append("resume"), most_bytes=most_bytes
    ), told


async def read_all(feed: LineFeed) -> list[bytes | None]:
    return [line async for line in feed]


@given(st.lists(st.text("ab\n", max_size=6).map(str.encode), max_size=8))
def test_however_the_bytes_come_the_lines_are_the_same(parts: list[bytes]) -> None:
    feed, _ = make_feed(most_bytes=4)
    for part in parts:
        feed.feed(part)
    feed.end(whole=False)
    *lines, rest = b"".join(parts).split(b"\n")
    wanted = [line if len(line) <= 4 else None for line in lines]
    if 0 < len(rest) <= 4:
        wanted.append(rest)
    assert asyncio.run(read_all(feed)) == wanted


async def test_a_line_is_offered_at_once_only_while_a_reader_waits_for_it() -> None:
    feed, _ = make_feed()
    offered: list[bytes] = []

    def take(line: bytes) -> bool:
        offered.append(line)
        return line.startswith(b"quick")

    feed.at_once = take
    feed.feed(b"quick before anybody reads\n")
    assert await anext(feed) == b"quick before anybody reads" and not offered
    reading = asyncio.ensure_future(anext(feed))
    await asyncio.sleep(0)
    feed.feed(b"quick 1\nslow\nquick 2\nquick 3\n")
    # Behind a line that waits nothing is taken: it would overtake.
    assert offered == [b"quick 1", b"slow"]
    assert [await reading, await anext(feed), await anext(feed)] == [b"slow", b"quick 2", b"quick 3"]


async def test_what_waits_is_bounded() -> None:
    feed, told = make_feed()
    feed.feed(b"x" * WAITING_BYTES + b"\n")
    assert told == []
    feed.feed(b"y\nz\n")
    assert told == ["pause"]
    await anext(feed)
    assert told == ["pause", "resume"]


async def test_the_end_comes_after_the_lines_with_its_reason() -> None:
    feed, _ = make_feed()
    feed.feed(b"a\nlost")
    feed.end(ConnectionResetError("gone"))
    feed.end()
    assert await anext(feed) == b"a"
    with pytest.raises(ConnectionResetError, match="gone"):
        await anext(feed)


async def test_a_burst_leaves_others_their_turns() -> None:
    feed, _ = make_feed()
    handled: list[bytes] = []
    at_turns: list[int] = []

    def take(line: bytes) -> bool:
        handled.append(line)
        return True

    async def read() -> None:
        async for line in feed:
            assert line is not None
            handled.append(line)

    feed.at_once = take
    reading = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    lines = [b"%d" % number for number in range(10 * TURN_LINES)]
    feed.feed(b"\n".join(lines) + b"\n")
    while len(handled) < len(lines):
        at_turns.append(len(handled))
        await asyncio.sleep(0)
    feed.end()
    await reading
    assert handled == lines
    assert all(after - before <= TURN_LINES for before, after in pairwise(at_turns))
    assert len(at_turns) >= 9
