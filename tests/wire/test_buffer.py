from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.support.waiting import HANG_S
from wsh.wire.buffer import OutputBuffer

SIZES = [0, 1, 10, 4095, 4096, 5000, 65_536, 70_000]


def test_a_reader_goes_on_where_it_stopped() -> None:
    buffer = OutputBuffer(100)
    buffer.append(b"one ")
    first = buffer.read()
    buffer.append(b"two")
    second = buffer.read(first.next_cursor)
    assert (first.data, second.data, second.dropped) == (b"one ", b"two", 0)


def test_a_reader_that_comes_too_late_is_told_what_it_missed() -> None:
    buffer = OutputBuffer(4)
    buffer.append(b"abcdefgh")
    chunk = buffer.read(1)
    assert (chunk.offset, chunk.data, chunk.dropped, chunk.next_cursor) == (4, b"efgh", 3, 8)
    assert buffer.read(None).dropped == 0


def test_a_cursor_from_the_future_reads_nothing() -> None:
    buffer = OutputBuffer(10)
    buffer.append(b"abc")
    chunk = buffer.read(99)
    assert (chunk.offset, chunk.data, chunk.dropped) == (3, b"", 0)


@given(st.lists(st.binary(max_size=20), max_size=30), st.integers(1, 30), st.integers(1, 7))
def test_reading_in_steps_gives_every_byte_once_or_counts_it_as_dropped(
    parts: list[bytes], size: int, step: int
) -> None:
    buffer, whole, cursor, seen = OutputBuffer(size), b"", 0, 0
    for number, part in enumerate(parts):
        buffer.append(part)
        whole += part
        assert buffer.end == len(whole)
        if number % 2:
            chunk = buffer.read(cursor, step)
            assert chunk.data == whole[chunk.offset : chunk.next_cursor]
            assert chunk.offset == cursor + chunk.dropped
            seen += len(chunk.data) + chunk.dropped
            cursor = chunk.next_cursor
    assert seen == cursor


async def test_whoever_waits_for_more_is_woken() -> None:
    buffer = OutputBuffer(10)
    waiting = asyncio.create_task(buffer.changed())
    await asyncio.sleep(0)
    buffer.append(b"x")
    async with asyncio.timeout(HANG_S):
        await waiting
    assert buffer.read().data == b"x"


def test_a_buffer_without_room_counts_what_passes() -> None:
    buffer = OutputBuffer(0)
    buffer.append(b"abc")
    assert (buffer.start, buffer.end, buffer.kept_bytes) == (3, 3, 0)


def test_both_ends_can_be_taken_back() -> None:
    buffer = OutputBuffer(100, start=10)
    buffer.append(b"abcdef")
    buffer.forget(12)
    buffer.truncate(15)
    assert (buffer.start, buffer.end, buffer.read().data) == (12, 15, b"cde")
    buffer.truncate(1)
    buffer.forget(99)
    assert (buffer.start, buffer.end, buffer.read().data) == (12, 12, b"")


@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "append", "forget", "truncate", "skip"]), st.sampled_from(SIZES)),
        max_size=25,
    ),
    st.sampled_from([1, 5000, 20_000, 300_000]),
)
def test_pieces_of_any_size_are_one_stretch(steps: list[tuple[str, int]], most: int) -> None:
    buffer, kept, start = OutputBuffer(most), b"", 0
    for number, (step, size) in enumerate(steps):
        match step:
            case "append":
                data = (b"%06d" % number * (size // 6 + 1))[:size]
                buffer.append(memoryview(data) if number % 3 else data)
                kept += data
                start, kept = start + max(0, len(kept) - most), kept[-most:]
            case "forget":
                buffer.forget(start + size)
                start, kept = start + min(size, len(kept)), kept[size:]
            case "truncate":
                buffer.truncate(start + size)
                kept = kept[:size]
            case "skip" if size:
                buffer.skip(size)
                start, kept = start + len(kept) + size, b""
        assert (buffer.start, buffer.end, buffer.kept_bytes) == (start, start + len(kept), len(kept))
        assert buffer.read().data == kept
        middle = start + len(kept) // 2
        assert buffer.read(middle, 5000).data == kept[len(kept) // 2 :][:5000]
