from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wsh.contract.output.log import MAX_TURNS, OutputLog

_streams = st.sampled_from(["stdout", "stderr"])


@given(st.lists(st.tuples(_streams, st.binary(max_size=9)), max_size=30), st.integers(1, 9))
def test_reading_in_steps_gives_every_byte_of_each_stream_in_order(parts: list[tuple[str, bytes]], step: int) -> None:
    log = OutputLog(10_000)
    whole = {"stdout": b"", "stderr": b""}
    for stream, data in parts:
        log.append(stream, data)  # type: ignore[arg-type]
        whole[stream] += data
    log.finish()
    assert log.end == sum(map(len, whole.values()))
    once = log.read()
    assert (once.stdout, once.stderr) == tuple(whole[s].decode("utf-8", "replace") for s in ("stdout", "stderr"))
    cursor, counts = 0, 0
    while True:
        reading = log.read(cursor, step)
        assert reading.cursor == cursor and reading.dropped_bytes == 0
        counts += reading.next_cursor - reading.cursor
        cursor = reading.next_cursor
        if not reading.more:
            break
        assert reading.next_cursor > reading.cursor, "every reading goes on"
    assert counts == log.end


@given(st.text(max_size=40), st.integers(1, 7), st.integers(4, 12))
def test_text_is_never_broken_where_one_reading_ends(text: str, chunk: int, step: int) -> None:
    data = text.encode("utf-8", "replace")
    log = OutputLog(10_000)
    seen, cursor = "", 0
    for start in range(0, len(data), chunk):
        log.append("stdout", data[start : start + chunk])
        reading = log.read(cursor, step)
        seen, cursor = seen + reading.stdout, reading.next_cursor
    log.finish()
    while (reading := log.read(cursor, step)).next_cursor > cursor:
        seen, cursor = seen + reading.stdout, reading.next_cursor
    assert seen == data.decode()


@given(st.lists(st.tuples(_streams, st.binary(max_size=30)), max_size=30), st.integers(1, 40), st.integers(0, 500))
def test_what_is_no_longer_kept_is_counted(parts: list[tuple[str, bytes]], size: int, cursor: int) -> None:
    log = OutputLog(size)
    for stream, data in parts:
        log.append(stream, data)  # type: ignore[arg-type]
    log.finish()
    assert log.raw.kept_bytes == min(size, log.end)
    reading = log.read(cursor)
    assert reading.cursor == max(min(cursor, log.end), log.start)
    assert reading.dropped_bytes == reading.cursor - min(cursor, log.end) and reading.next_cursor == log.end


def test_streams_that_take_turns_byte_by_byte_cost_bounded_memory() -> None:
    log = OutputLog(10 * 1024 * 1024)
    for _ in range(MAX_TURNS):
        log.append("stdout", b"o")
        log.append("stderr", b"e")
    assert log.end == 2 * MAX_TURNS and len(log._turns) <= MAX_TURNS
    reading = log.read(0)
    assert reading.dropped_bytes == MAX_TURNS and len(reading.stdout) == len(reading.stderr) == MAX_TURNS // 2


def test_a_stream_of_single_bytes_is_one_piece() -> None:
    log = OutputLog(10_000)
    for _ in range(5000):
        log.append("stdout", b"x")
    assert len(log._turns) == 1 and log.read().stdout == "x" * 5000
