"""Absolute line numbers and epochs."""

from __future__ import annotations

from wsh.terminal import AltScreen, Terminal, TerminalLimits


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"%d\r\n" % number for number in range(first, last))


def assert_numbers_are_true(terminal: Terminal, shift: int = 0) -> None:
    page = terminal.scrollback(limit=1_000_000)
    for index, line in enumerate(page.lines[:-1]):
        assert line == str(page.first_line + index - shift)


def test_numbers_stay_true_while_lines_are_dropped_at_any_width() -> None:
    for cols in (5, 80, 300):
        with Terminal(4, cols, TerminalLimits(scrollback_lines=500)) as terminal:
            for start in range(0, 9000, 777):
                terminal.feed(numbered(start, start + 777))
                assert_numbers_are_true(terminal)
            assert terminal.epoch == 0


def test_a_single_large_feed_does_not_lose_count() -> None:
    with Terminal(4, 20, TerminalLimits(scrollback_lines=100)) as terminal:
        terminal.feed(b"\n" * 1_000_000 + b"\r" + numbered(1_000_000, 1_000_200))
        assert_numbers_are_true(terminal)
        assert terminal.total_lines == 1_000_201
        assert terminal.epoch == 0


def test_clearing_the_scrollback_begins_an_epoch_and_goes_on_counting() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 100))
        epoch = terminal.epoch
        terminal.feed(b"\x1b[H\x1b[2J\x1b[3J")
        assert terminal.epoch > epoch
        page = terminal.scrollback()
        assert (page.first_line, page.total, page.lines) == (97, 1, [""])
        terminal.feed(numbered(97, 300))
        assert_numbers_are_true(terminal)


def test_a_reset_begins_an_epoch_and_reuses_no_number() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 100))
        before = terminal.total_lines
        terminal.feed(b"\x1bc")
        assert terminal.epoch == 1
        assert terminal.first_line >= before
        assert terminal.scrollback().lines == [""]


def test_the_alternate_screen_stands_below_the_scrollback_and_the_normal_one_goes_on_after_it() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 100) + b"\x1b[?1049h\x1b[Halt")
        assert terminal.take_events() == [AltScreen(True)]
        inside = terminal.scrollback()
        assert (inside.first_line, inside.total_lines, inside.epoch) == (0, 98, 1)
        assert inside.lines == [*map(str, range(97)), "alt"]
        assert terminal.screen().first_line_index == 97
        assert terminal.scrollback(since_line=96, styled=True).lines == [[{"text": "96"}], [{"text": "alt"}]]
        assert terminal.vt_lines_between(96, 98)[0] == [b"96", b"alt"]
        assert [match.line for match in terminal.search("9", limit=2, newest_first=True)] == [96, 95]
        assert [match.line for match in terminal.search("alt")] == [97]
        terminal.feed(b"\n" * 50 + b"\x1b[?1049l")
        assert terminal.take_events() == [AltScreen(False)]
        assert terminal.epoch == 2
        terminal.feed(numbered(100, 200))
        assert_numbers_are_true(terminal)


def test_lines_that_scroll_off_in_the_step_that_enters_the_alternate_screen_are_counted() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 50) + b"\x1b[?1049hvim\x1b[?1049l" + numbered(50, 60) + b"\x1b[?1049h")
        with Terminal.restore(terminal.snapshot()) as restored:
            for each in (terminal, restored):
                each.feed(b"\x1b[?1049l")
                assert_numbers_are_true(each)


def test_a_new_height_keeps_the_numbers_and_a_new_width_begins_an_epoch() -> None:
    with Terminal(10, 20) as terminal:
        terminal.feed(numbered(0, 100))
        for rows in (30, 3, 1, 50, 10):
            terminal.resize(rows, 20)
            assert terminal.epoch == 0
            assert_numbers_are_true(terminal)
        terminal.resize(10, 40)
        assert terminal.epoch == 1
        assert_numbers_are_true(terminal)


def test_a_reflow_makes_more_or_fewer_lines_and_first_keeps_its_number() -> None:
    with Terminal(5, 20) as terminal:
        terminal.feed(b"".join(b"%-38d|\r\n" % number for number in range(20)))
        assert terminal.total_lines == 41
        terminal.resize(5, 40)
        page = terminal.scrollback()
        assert page.total_lines == 21
        assert page.first_line == 0
        assert page.lines[3] == f"{3:<38}|"
        terminal.resize(5, 20)
        assert terminal.scrollback().total_lines == 41


def test_a_reflow_under_the_alternate_screen_is_noticed_on_return() -> None:
    with Terminal(5, 20) as terminal:
        terminal.feed(b"".join(b"%-38d|\r\n" % number for number in range(20)) + b"\x1b[?1049h")
        terminal.resize(5, 40)
        terminal.feed(b"\x1b[?1049l")
        page = terminal.scrollback()
        assert (page.first_line, page.total_lines, page.lines[3]) == (0, 21, f"{3:<38}|")


def test_trimming_drops_the_oldest_lines_and_counts_them() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 5000))
        first = terminal.first_line
        dropped = terminal.trim_scrollback(100)
        assert dropped == terminal.first_line - first == terminal.dropped_lines
        page = terminal.scrollback(limit=100_000)
        assert page.total == 104
        assert_numbers_are_true(terminal)
        terminal.feed(numbered(5000, 20_000))
        assert_numbers_are_true(terminal)
        assert terminal.scrollback().total == 10_004
        assert terminal.epoch == 0


def test_lines_can_be_had_by_their_numbers() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 50))
        assert terminal.lines_between(10, 13) == ["10", "11", "12"]
        assert terminal.lines_between(48, 60) == ["48", "49", ""]
        assert terminal.lines_between(10, 11, styled=True) == [[{"text": "10"}]]
        assert terminal.lines_between(60, 70) == []
        assert terminal.vt_lines_between(10, 11)[0] == [b"10"]
        assert terminal.screen().first_line_index == 47


def test_packed_scrollback_reads_the_same() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 9000))
        terminal.compress()
        assert_numbers_are_true(terminal)
        terminal.compress()
        terminal.feed(numbered(9000, 12_000))
        assert_numbers_are_true(terminal)


def test_blank_rows_below_the_cursor_are_no_lines() -> None:
    with Terminal(10, 20) as terminal:
        terminal.feed(b"one\r\ntwo\r\n\r\n\x1b[44m   \x1b[0m\x1b[2;1H")
        page = terminal.scrollback()
        assert page.lines == ["one", "two"]
        assert terminal.screen().total_lines == 2
        assert terminal.screen(False).lines == ["one", "two"] + [""] * 8


def test_the_scrollback_under_the_alternate_screen_follows_a_new_size() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 50) + b"\x1b[?1049h\x1b[Hone\r\ntwo")
        assert terminal.scrollback().lines[-3:] == ["46", "one", "two"]
        terminal.resize(8, 20)
        page = terminal.scrollback()
        assert page.lines == [*map(str, range(page.first_line, page.total_lines - 2)), "one", "two"]
        terminal.resize(8, 40)
        page = terminal.scrollback()
        assert page.lines == [*map(str, range(page.total_lines - 2)), "one", "two"]
        terminal.feed(b"\x1b[?1049l" + numbered(50, 70))
        assert_numbers_are_true(terminal)


def test_a_reset_on_the_alternate_screen_reuses_no_number() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(numbered(0, 50) + b"\x1b[?1049h")
        terminal.scrollback()
        terminal.feed(b"\x1bcfresh")
        page = terminal.scrollback()
        assert page.lines == ["fresh"]
        assert page.first_line >= 50


def test_scrollback_inside_of_a_sequence_too_long_to_copy_is_the_screen() -> None:
    with Terminal(4, 20, TerminalLimits(continuation_bytes=1000)) as terminal:
        terminal.feed(numbered(0, 50) + b"\x1b[?1049h\x1b[Halt\x1b]52;c;" + b"A" * 5000)
        page = terminal.scrollback()
        assert (page.lines, page.total) == (["alt"], 1)


def test_a_new_size_keeps_the_scrollback_though_its_limits_change_with_it() -> None:
    terminal = Terminal(24, 80)
    terminal.feed(b"".join(b"%d\r\n" % number for number in range(1, 20_001)))
    for rows, cols in ((49, 104), (37, 48), (24, 80), (13, 106), (49, 104), (5, 300), (49, 20)):
        terminal.resize(rows, cols)
        lines, _ = terminal.vt_lines_between(terminal.first_line, terminal.total_lines - 1)
        assert lines[-5000:] == [b"%d" % number for number in range(15_001, 20_001)], (rows, cols)
        terminal.feed(b"\r\x1b[K")
        assert terminal.mended == 0
    terminal.close()
