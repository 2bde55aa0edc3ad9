"""Bytes in, screen out."""

from __future__ import annotations

import mmap

import pytest

from wsh.terminal import Terminal, TerminalLimits, buffer_of
from wsh.wire.error import InvalidSize


def test_a_styled_screen_has_spans_with_only_the_attributes_that_are_set() -> None:
    with Terminal(4, 20) as terminal:
        terminal.feed(b"plain\r\n\x1b[1;31mred \x1b[48;5;20mbg\x1b[0m\r\n\x1b[38;2;1;2;3mrgb")
        assert terminal.screen(True).lines == [
            [{"text": "plain"}],
            [
                {"text": "red ", "fg": {"indexed": 1}, "bold": True},
                {"text": "bg", "fg": {"indexed": 1}, "bg": {"indexed": 20}, "bold": True},
            ],
            [{"text": "rgb", "fg": {"rgb": {"r": 1, "g": 2, "b": 3}}}],
            [],
        ]


def test_rows_of_nothing_but_background_colour_are_not_lost() -> None:
    with Terminal(3, 6) as terminal:
        terminal.feed(b"\x1b[44m\x1b[2J\x1b[0m\x1b[2;1H\x1b[2K\x1b[2;3H\x1b[41m\x1b[2X")
        assert terminal.screen(True).lines == [
            [{"text": "      ", "bg": {"indexed": 4}}],
            [{"text": "  "}, {"text": "  ", "bg": {"indexed": 1}}],
            [{"text": "      ", "bg": {"indexed": 4}}],
        ]
        assert terminal.screen(False).lines == ["", "", ""]


def test_every_attribute_of_a_span_can_be_told() -> None:
    with Terminal(1, 20) as terminal:
        terminal.feed(b"\x1b[1;2;3;4;5;7;9mx")
        assert terminal.screen(True).lines == [
            [
                {
                    "text": "x",
                    "bold": True,
                    "faint": True,
                    "italic": True,
                    "underline": True,
                    "strikethrough": True,
                    "blink": True,
                    "inverse": True,
                }
            ]
        ]


def test_hyperlinks_are_part_of_their_spans() -> None:
    with Terminal(2, 40) as terminal:
        terminal.feed(b'a \x1b]8;id=1;http://x.y/?a=1&b="<\xc3\xa9\x1b\\\x1b[1mlink\x1b[0m\x1b]8;;\x1b\\ z')
        assert terminal.screen(True).lines[0] == [
            {"text": "a "},
            {"text": "link", "bold": True, "link": 'http://x.y/?a=1&b="<é'},
            {"text": " z"},
        ]
        assert b"\x1b]8;;http://x.y/" in terminal.vt_rows()[0]


def test_a_size_that_is_not_possible_is_refused() -> None:
    for rows, cols in ((0, 80), (24, 0), (1001, 80), (24, 1001), (-1, 5), (True, 5)):
        with pytest.raises(InvalidSize):
            Terminal(rows, cols)
    with Terminal(24, 80) as terminal, pytest.raises(InvalidSize):
        terminal.resize(0, 1)


def test_thirty_thousand_lines_leave_the_newest_ten_thousand_with_true_numbers() -> None:
    with Terminal(24, 80) as terminal:
        terminal.feed(b"".join(b"%d\r\n" % number for number in range(30_000)))
        page = terminal.scrollback(limit=100_000)
        assert page.total == len(page.lines) == 10_000 + 24 - 0
        assert page.total_lines == 30_001
        assert page.lines[0] == str(page.first_line)
        assert page.lines[-2:] == ["29999", ""]
        assert terminal.scrollback(0, 2).lines == ["29999", ""]
        assert terminal.scrollback(1, 2).lines == ["29998", "29999"]
        assert terminal.scrollback(since_line=29_998).lines == ["29998", "29999", ""]
        assert terminal.scrollback(since_line=0, limit=1).first_line == page.first_line == terminal.dropped_lines
        assert terminal.epoch == 0


def test_feeding_from_shared_memory_needs_no_copy() -> None:
    with mmap.mmap(-1, 4096) as memory, Terminal(2, 20) as terminal:
        memory[100:105] = b"hello"
        shared = buffer_of(memory)
        terminal.feed_range(shared, 100, 5)
        with pytest.raises(ValueError, match="outside"):
            terminal.feed_range(shared, 4090, 10)
        shared.close()
        terminal.feed(memoryview(b"xx world")[2:])
        terminal.feed(bytearray(b"!"))
        assert terminal.screen(False).lines[0] == "hello world!"


def test_a_terminal_without_scrollback_keeps_its_screen_only() -> None:
    with Terminal(3, 10, TerminalLimits(scrollback_lines=0)) as terminal:
        terminal.feed(b"".join(b"%d\r\n" % number for number in range(5000)))
        assert terminal.scrollback().lines == ["4998", "4999", ""]
        assert terminal.scrollback().first_line == 4998


@pytest.mark.parametrize("styled", [False, True])
def test_a_page_tells_which_lines_go_on_in_the_next(styled: bool) -> None:
    with Terminal(4, 10) as terminal:
        terminal.feed("abcdefghi abc\r\n0123456789\r\nnext\r\n漢字漢字a字\r\n".encode())
        assert terminal.scrollback(styled=styled).wrapped == [0, 4]
        assert terminal.scrollback(0, 2, styled=styled).wrapped == []
        assert terminal.scrollback(styled=styled, since_line=4, limit=1).wrapped == [4], "the next is on another page"
        terminal.feed(b" " * 25 + b"x\r\n\r\n\r\n")
        assert terminal.scrollback(styled=styled).wrapped == [0, 4, 6, 7]
        assert terminal.scrollback(styled=styled, since_line=6, limit=2).wrapped == [6, 7], "blank rows"
        below = terminal.total_lines
        terminal.feed(b"\x1b[?1049h\x1b[H" + b"y" * 15)
        first = terminal.screen().first_line_index
        assert below > first and terminal.scrollback(styled=styled).wrapped == [0, 4, 6, first]


def test_a_page_on_which_no_line_goes_on_says_so_also_behind_blank_ones() -> None:
    with Terminal(4, 10) as terminal:
        terminal.feed(b"\r\n\r\nabc\r\n\r\n\r\n")
        assert terminal.scrollback().wrapped == []
        terminal.feed(b"\x1b[H\x1b[4;1H" + b"z" * 10)
        assert terminal.scrollback().wrapped == []


def test_cells_that_nobody_wrote_have_no_style_of_their_neighbours() -> None:
    with Terminal(3, 20) as terminal:
        terminal.feed(
            "\x1b[41mred\x1b[0m\x1b[3Cx\r\n\x1b[7m日\x1b[0m\x1b[2C\x1b[32mgreen\x1b[0m\r\na\x1b[44m\x1b[2X".encode()
        )
        terminal.feed(b"\x1b[0m\x1b[4Cz")
        expected = [
            [{"text": "red", "bg": {"indexed": 1}}, {"text": "   x"}],
            [{"text": "日", "inverse": True}, {"text": "  "}, {"text": "green", "fg": {"indexed": 2}}],
            [{"text": "a"}, {"text": "  ", "bg": {"indexed": 4}}, {"text": "  z"}],
        ]
        assert terminal.screen(True).lines == expected
        assert terminal.scrollback(styled=True).lines == expected


def test_runs_that_differ_in_nothing_a_span_tells_are_one_span() -> None:
    with Terminal(1, 20) as terminal:
        terminal.feed(b"\x1b[4ma\x1b[4:3mb\x1b[58;5;1mc\x1b[0m\x1b[8md\x1b[0me")
        assert terminal.screen(True).lines == [[{"text": "abc", "underline": True}, {"text": "de"}]]


def test_a_closed_terminal_can_be_closed_again() -> None:
    terminal = Terminal()
    terminal.close()
    terminal.close()


@pytest.mark.parametrize("sequence", [b"\x1b[?40h\x1b[?3l", b"\x1b[?40h\x1b[?3h", b"\x1b[?40h\x1b[?3r"])
def test_a_program_cannot_change_the_width_of_its_terminal(sequence: bytes) -> None:
    with Terminal(10, 100) as terminal:
        terminal.feed(b"before" + sequence + b"after")
        screen = terminal.screen(True)
        assert (screen.rows, screen.cols, len(screen.lines)) == (10, 100, 10)
        terminal.feed(b"\x1bc" + b"x" * 100 + b"y")
        assert [str(line) for line in terminal.screen(False).lines][:2] == ["x" * 100, "y"]
        terminal.scrollback(styled=True)
        assert terminal.replay()
        assert terminal.search("x", limit=1)


def test_rows_that_are_gained_show_the_lines_above_also_where_the_width_changes() -> None:
    terminal = Terminal(20, 40)
    terminal.feed(b"".join(b"%d\r\n" % number for number in range(60)) + b"$ ")
    before = [str(line) for line in terminal.screen(styled=False).lines]
    for rows, cols in ((8, 90), (20, 40), (8, 30), (20, 40)):
        terminal.resize(rows, cols)
    assert [str(line) for line in terminal.screen(styled=False).lines] == before
