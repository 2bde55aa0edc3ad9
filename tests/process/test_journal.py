"""The journal on disk: segments, bounds, records, and a disk that refuses."""

from __future__ import annotations

import resource
import shutil
import struct
from pathlib import Path

import pytest

from tests.support.process.keeper import journal_in, opened, read_journal, said, shell
from tests.support.waiting import until
from wsh.process import ChildHandle, KeeperClient, launch
from wsh.process.keeper import layout
from wsh.wire.system.place import Places

KIB = 1024


def read_records(folder: Path) -> list[tuple[int, int, int, int, int, int, int]]:
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("journal.*.idx")))
    return list(struct.iter_unpack(layout.RECORD, data))


def consume_all(keeper: KeeperClient) -> None:
    def dirty(children: list[ChildHandle]) -> None:
        for child in children:
            child.ring.consume(child.ring.readable())

    keeper.on_dirty = dirty


async def test_the_journal_is_cut_into_segments_and_its_oldest_are_dropped(
    keeper: KeeperClient, tmp_path: Path
) -> None:
    consume_all(keeper)
    journal = journal_in(tmp_path / "j", segment_bytes=64 * KIB, session_bytes=256 * KIB)
    child = await keeper.spawn(shell("seq 100000", journal=journal))
    await child.exited
    whole = b"".join(b"%d\r\n" % n for n in range(1, 100_001))
    await until(lambda: child.ring.journaled == len(whole))
    segments = read_journal(tmp_path / "j")
    first = min(segments)
    assert first > 0 and child.ring.journal_start == first and first % (64 * KIB) == 0
    assert b"".join(segments.values()) == whole[first:]
    assert sum(path.stat().st_size for path in (tmp_path / "j").iterdir()) <= 256 * KIB
    assert len(list((tmp_path / "j").glob("*.idx"))) == len(segments)
    assert child.ring.journal_dropped == 0


async def test_the_sidecar_tells_sizes_times_and_the_exit(keeper: KeeperClient, tmp_path: Path) -> None:
    script = "echo one; read x; echo two; sleep 0.05; echo three; exit 7"
    child = await keeper.spawn(shell(script, rows=10, cols=20, journal=journal_in(tmp_path / "j")))
    await said(child, b"one")
    child.resize(30, 40, 3)
    await child.write_all(b"\n")
    await child.exited
    await until(lambda: any(row[2] == layout.KIND_EXIT for row in read_records(tmp_path / "j")))
    rows = read_records(tmp_path / "j")
    sizes = [(row[0], row[3], row[4]) for row in rows if row[2] == layout.KIND_SIZE]
    assert sizes[0] == (0, 10, 20) and sizes[-1] == (3, 30, 40)
    ends = [(row[0], row[6]) for row in rows if row[2] == layout.KIND_EXIT]
    assert ends == [(child.ring.head, 7 << 8)]
    times = [(row[0], row[1]) for row in rows if row[2] == layout.KIND_OUTPUT]
    assert times == sorted(times) and len(times) >= 2
    assert times[-1][1] - times[0][1] > 40_000


async def test_each_segment_begins_with_the_size_in_force_there(keeper: KeeperClient, tmp_path: Path) -> None:
    consume_all(keeper)
    journal = journal_in(tmp_path / "j", segment_bytes=64 * KIB)
    child = await keeper.spawn(shell("seq 20000; echo ready; read x; seq 20000", journal=journal, rows=5, cols=6))
    await until(lambda: child.ring.head > 108_894 and child.ring.journaled == child.ring.head)
    child.resize(7, 8, child.ring.head)
    await keeper.ping()  # it has heard of the size by now
    await child.write_all(b"\n")
    await child.exited
    await until(lambda: child.ring.journaled == child.ring.head)
    await until(lambda: any(row[2] == layout.KIND_EXIT for row in read_records(tmp_path / "j")))
    firsts = []
    for path in sorted((tmp_path / "j").glob("*.idx")):
        offset, _, kind, rows, cols, restated, _ = struct.unpack_from(layout.RECORD, path.read_bytes())
        assert (kind, restated) == (layout.KIND_SIZE, 1)
        firsts.append((offset, rows, cols))
    assert firsts == [(0, 5, 6), (65536, 5, 6), (131072, 7, 8), (196608, 7, 8)]


async def test_a_disk_that_refuses_stops_the_journal_and_not_the_terminal(places: Places, tmp_path: Path) -> None:
    """The refusal is EFBIG from a limit on file sizes, which needs no privilege; ENOSPC takes the same way."""
    limit = 20_000_000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        async with opened(places) as keeper:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            consume_all(keeper)
            script = 'stty raw; head -c 26000000 /dev/zero; until [ "$x" = end ]; do read x; echo again; done; exit 4'
            child = await keeper.spawn(shell(script, journal=journal_in(tmp_path / "j", segment_bytes=64 << 20)))
            await until(lambda: child.ring.head == 26_000_000 and child.ring.journaled == 26_000_000)
            # A keeper that had no processor for a while has tried again already.
            assert 0 < child.ring.journal_dropped <= 26_000_000 - limit
            await until(lambda: child.write(b"\n") and child.ring.journal_state == "ok")
            await child.write_all(b"end\n")
            assert (await child.exited).code == 4
            await until(lambda: child.ring.eof and child.ring.journaled == child.ring.head)
            segments = read_journal(tmp_path / "j")
            assert len(segments[0]) == limit and b"again" in segments[max(segments)]
            assert sum(map(len, segments.values())) + child.ring.journal_dropped == child.ring.head

    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_journal_folder_that_vanishes_costs_bytes_of_the_journal_alone(
    keeper: KeeperClient, tmp_path: Path
) -> None:
    consume_all(keeper)
    script = "echo one; read x; seq 50000; echo end"
    child = await keeper.spawn(shell(script, journal=journal_in(tmp_path / "j", segment_bytes=64 * KIB)))
    await until(lambda: child.ring.journaled > 0)
    shutil.rmtree(tmp_path / "j")
    await child.write_all(b"\n")
    assert (await child.exited).code == 0
    await until(lambda: child.ring.journaled == child.ring.head)
    assert child.ring.journal_state == "full" and child.ring.journal_dropped > 0


async def test_without_a_journal_its_state_is_off(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("echo hello"))
    await child.exited
    assert child.ring.journal_state == "off" and child.ring.journaled == 0
    assert child.ring.peek() == b"hello\r\n"


async def test_output_after_a_clock_was_set_back_has_its_times_too(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record comes every 10 ms; counted by a clock that was set back, the next would come in years."""
    shift, script = tmp_path / "shift", tmp_path / "keeper.py"
    main = launch._MAIN
    shift.write_text("0")
    script.write_text(
        f"import time\nreal = time.time_ns\ntime.time_ns = lambda: real() + int(open({str(shift)!r}).read() or 0)\n"
        f"exec(compile(open({str(main)!r}).read(), {str(main)!r}, 'exec'), "
        f"{{'__name__': '__main__', '__file__': {str(main)!r}}})\n"
    )
    monkeypatch.setattr(launch, "_MAIN", script)
    years_us = 9 * 365 * 86_400 * 1_000_000

    def times() -> list[tuple[int, int]]:
        return [(row[0], row[1]) for row in read_records(tmp_path / "j") if row[2] == layout.KIND_OUTPUT]

    async with opened(places) as keeper:
        consume_all(keeper)
        child = await keeper.spawn(
            shell("stty -echo; echo one; read x; echo two; read x", journal=journal_in(tmp_path / "j"))
        )
        await until(lambda: child.ring.head >= 5, "the first line")
        shift.write_text(str(-years_us * 1000))
        await child.write_all(b"\n")
        await until(lambda: child.ring.head >= 10, "the second line")
        await child.write_all(b"\n")
        await child.exited
        await until(lambda: bool(times()) and times()[-1][0] >= 5, "its time", seen=times)
        assert years_us * 0.9 < times()[0][1] - times()[-1][1] < years_us * 1.1
