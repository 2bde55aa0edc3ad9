"""Sequences that the library does otherwise than xterm, and that are put right as they are fed."""

from __future__ import annotations

import pytest

from wsh.terminal import Terminal

SOFT_RESET = b"\x1b[!p"
SET_UP = b"\x1b[3;4r\x1b[?6h\x1b[4h\x1b[?25l\x1b[?1h\x1b[1;31m\x1b(0\x1b7\x1b[2;5H"


def show(*pieces: bytes) -> tuple[list[object], tuple[int, int, bool], bool]:
    with Terminal(6, 20) as terminal:
        for piece in pieces:
            terminal.feed(piece)
        screen = terminal.screen(True)
        cursor = (screen.cursor.row, screen.cursor.col, screen.cursor.visible)
        return list(screen.lines), cursor, terminal.modes.application_cursor_keys


@pytest.mark.parametrize("cut", range(len(SOFT_RESET) + 1))
def test_a_soft_reset_undoes_modes_pen_and_margins_and_moves_nothing_wherever_it_is_cut(cut: int) -> None:
    pieces = (b"xyz\r\n" + SET_UP + SOFT_RESET[:cut], SOFT_RESET[cut:] + b"q")
    lines, cursor, application_keys = show(*pieces)
    # Row 2 of the region from 3 to 4 is row 3 of the screen, counted from 0, and the letter is no line.
    assert lines == [[{"text": "xyz"}], [], [], [{"text": "    q"}], [], []]
    assert cursor == (3, 5, True)
    assert not application_keys
    back, *_ = show(*pieces, b"\x1b8home")
    assert back[0] == [{"text": "home"}]


def test_a_soft_reset_lets_lines_scroll_over_the_whole_screen_again() -> None:
    lines, *_ = show(b"\x1b[1;2r" + SOFT_RESET + b"\x1b[6;1Hlast\n\rnew")
    assert lines[4:] == [[{"text": "last"}], [{"text": "new"}]]


@pytest.mark.parametrize("cut", range(7))
def test_a_program_that_asks_for_another_width_goes_on_in_the_width_of_the_session(cut: int) -> None:
    allow = b"\x1b[?40h"
    lines, *_ = show(b"kept\r\n" + allow[:cut], allow[cut:] + b"\x1b[?3h" + b"\x1b[3;1H" + b"w" * 25)
    assert lines[2:4] == [[{"text": "w" * 20}], [{"text": "w" * 5}]]
