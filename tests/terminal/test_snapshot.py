"""Terminals on disk."""

from __future__ import annotations

import pytest

from tests.support.terminal.fragment import state_of
from wsh.terminal import Terminal, TerminalLimits
from wsh.wire.error import SnapshotCorrupt, SnapshotNotPossible

HALVES = [
    (b"hi \x1b[3", b"1mRED\x1b[0m"),
    ("é日".encode()[:-1], "日".encode()[-1:] + b"x"),
    (b"\x1b]2;ti", b"tle\x07"),
    (b"\x1b[3;10r\x1b[5;5H\x1b7\x1b[8;1H", b"\x1b8Z"),
    (b"\x1b[3g\x1b(0", b"\tqqq"),
    (b"main\x1b[?1049halt", b"\x1b[?1049l!"),
    (b"\x1b[?2004h\x1b[?1006h\x1b[>5u", b"\x1b[<u"),
    (b"\x1bP+q", b"544e\x1b\\"),
    (b"\x1b_Gi=1;", b"AAAA\x1b\\ok"),
]


@pytest.mark.parametrize(("before", "after"), HALVES)
def test_a_snapshot_in_the_middle_of_anything_goes_on_as_if_nothing_happened(before: bytes, after: bytes) -> None:
    with Terminal() as terminal:
        terminal.feed(before)
        with Terminal.restore(terminal.snapshot()) as restored:
            terminal.feed(after)
            restored.feed(after)
            assert state_of(restored) == state_of(terminal)
            assert restored.take_replies() == terminal.take_replies()


def test_a_snapshot_carries_scrollback_numbers_and_size() -> None:
    with Terminal(10, 40, TerminalLimits(scrollback_lines=500)) as terminal:
        terminal.resize(10, 50, cell_width_px=7, cell_height_px=15)
        terminal.feed(b"".join(b"%d\r\n" % number for number in range(3000)))
        terminal.trim_scrollback(300)
        data = terminal.snapshot()
        with Terminal.restore(data, TerminalLimits(scrollback_lines=500)) as restored:
            assert restored.scrollback(limit=10_000) == terminal.scrollback(limit=10_000)
            assert restored.dropped_lines == terminal.dropped_lines == 2691
            restored.feed(b"\x1b[14t")
            assert restored.take_replies() == b"\x1b[4;150;350t"
            with Terminal.restore(restored.snapshot(), TerminalLimits(scrollback_lines=500)) as again:
                assert again.scrollback(limit=10_000) == terminal.scrollback(limit=10_000)
                assert again.dropped_lines == 2691


def test_a_snapshot_can_be_restored_with_fewer_lines_kept() -> None:
    with Terminal(10, 40) as terminal:
        terminal.feed(b"".join(b"%d\r\n" % number for number in range(5000)))
        with Terminal.restore(terminal.snapshot(), TerminalLimits(scrollback_lines=50)) as restored:
            page = restored.scrollback(limit=10_000)
            assert (page.total, page.lines[0], page.first_line) == (60, "4941", 4941)


def test_a_damaged_snapshot_is_refused_wherever_it_is_damaged() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(b"".join(b"%d\r\n" % number for number in range(50)))
        data = terminal.snapshot()
    for at in range(0, len(data), max(1, len(data) // 150)):
        damaged = bytearray(data)
        damaged[at] ^= 0x40
        with pytest.raises(SnapshotCorrupt):
            Terminal.restore(bytes(damaged))
        with pytest.raises(SnapshotCorrupt):
            Terminal.restore(data[:at])
    with pytest.raises(SnapshotCorrupt):
        Terminal.restore(b"")
    with pytest.raises(SnapshotCorrupt):
        Terminal.restore(b"rubbish" * 100)


def test_a_sequence_too_long_to_store_is_said_and_passes() -> None:
    with Terminal(limits=TerminalLimits(continuation_bytes=1000)) as terminal:
        terminal.feed(b"\x1b]52;c;" + b"A" * 5000)
        with pytest.raises(SnapshotNotPossible):
            terminal.snapshot()
        terminal.feed(b"\x07after")
        with Terminal.restore(terminal.snapshot()) as restored:
            assert restored.screen(False).lines[0] == "after"


def test_a_replay_can_be_limited_and_is_whole_without_scrollback() -> None:
    with Terminal(4, 20) as terminal, Terminal(4, 20) as other:
        terminal.feed(b"".join(b"%d\r\n" % number for number in range(50)))
        other.feed(terminal.replay(scrollback_lines=5))
        assert other.scrollback().lines == ["42", "43", "44", "45", "46", "47", "48", "49", ""]
        other.feed(terminal.replay(scrollback_lines=0))
        assert other.screen(False).lines == ["47", "48", "49", ""]


def test_a_replay_names_title_and_directory_cleanly() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(b"\x1b]2;a title\x07\x1b]7;file:///tmp\x07")
        replay = terminal.replay()
        assert b"\x1b]2;a title\x1b\\" in replay
        assert b"\x1b]7;file:///tmp\x1b\\" in replay
        assert b"\0" not in replay


def test_a_replay_lets_the_other_side_reflow_what_had_wrapped() -> None:
    with Terminal(6, 20) as terminal, Terminal(6, 20) as other:
        terminal.feed(b"abcdefghij" * 5 + b"\r\n\x1b[42m" + b"klmnopqrst" * 3 + b"\x1b[0m\r\nq")
        other.feed(terminal.replay())
        for each in (terminal, other):
            each.resize(6, 60)
        assert state_of(other) == state_of(terminal)


def test_a_terminal_that_came_back_many_times_still_keeps_its_lines() -> None:
    def lines(start: int, end: int) -> bytes:
        return b"".join(b"\x1b[3%d;1mline %d\x1b[0m\r\n" % (n % 8, n) for n in range(start, end))

    limits = TerminalLimits(scrollback_lines=2000)
    terminal = Terminal(24, 80, limits)
    terminal.feed(lines(0, 5000))
    for turn in range(60):
        with terminal:
            terminal = Terminal.restore(terminal.snapshot(), limits)
        terminal.feed(lines(5000 + 70 * turn, 5070 + 70 * turn))
        kept = terminal.scrollback(limit=10_000).lines
        assert len(kept) == 2000 + 24
        assert kept[0] == f"line {5070 + 70 * turn - 2023}"
    terminal.close()


def test_a_state_that_was_taken_stays_as_it_was_while_the_terminal_goes_on_and_ends() -> None:
    with Terminal() as terminal:
        terminal.feed(b"".join(b"line %d\r\n" % number for number in range(3000)))
        then = terminal.snapshot()
        state = terminal.take_state()
        terminal.feed(b"later\r\n" * 3000)
        assert terminal.snapshot() != then
    assert b"".join(state.to_parts()) == then
