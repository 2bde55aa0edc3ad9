"""The visible rows are read as they change, and are always those that a look at the whole screen would find."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.terminal.fragment import STREAM
from wsh.terminal import Terminal, TerminalLimits
from wsh.terminal.engine import view
from wsh.terminal.row import ActiveRows

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.vt"))
LETTERS = st.one_of(st.text("abc ", max_size=40), st.text("ab日\u0301", max_size=5)).map(str.encode)
LINES = st.integers(1, 30).map(lambda count: b"x\r\n" * count)


def read_anew(terminal: Terminal) -> tuple[list[bytes], frozenset[int]]:
    """What a first look at the whole screen finds; the next look of the terminal's own is a first one, too."""
    whole = ActiveRows()
    whole.refresh(terminal.handle, terminal.rows, terminal.cols, all_of_them=True)
    return whole.rows, whole.flowing


def follow(pieces: list[bytes | tuple[int, int]], size: tuple[int, int], kept: int) -> None:
    limits = TerminalLimits(scrollback_lines=kept)
    with Terminal(*size, limits) as terminal, Terminal(*size, limits) as twin:
        for piece in pieces:
            for each in (terminal, twin):
                if isinstance(piece, bytes):
                    each.feed(piece)
                else:
                    each.resize(*piece)
            assert terminal.modes == twin.modes  # looks at the same view
            assert (terminal.vt_rows(), terminal.flowing_rows) == read_anew(twin)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(STREAM, LETTERS, LINES, st.tuples(st.integers(1, 8), st.integers(1, 24))), max_size=10),
    st.tuples(st.integers(1, 8), st.integers(1, 24)),
    st.sampled_from((0, 5, 1000)),
)
def test_rows_read_as_they_change_are_those_of_a_first_look(
    pieces: list[bytes | tuple[int, int]], size: tuple[int, int], kept: int
) -> None:
    follow(pieces, size, kept)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_read_as_it_comes_gives_the_rows_of_a_first_look(path: Path) -> None:
    data = path.read_bytes()[:60_000]
    step = max(7, len(data) // 100)
    follow([data[at : at + step] for at in range(0, len(data), step)], (24, 80), 50)


def test_a_mark_that_comes_later_joins_its_letter() -> None:
    with Terminal(4, 10) as terminal:
        terminal.feed(b"e")
        assert terminal.vt_rows()[0] == b"e"
        terminal.feed("\u0301".encode())
        assert terminal.vt_rows()[0].decode() == "e\u0301"


def test_a_row_that_a_wide_character_left_is_read_again_when_that_is_overwritten() -> None:
    with Terminal(4, 5) as terminal:
        terminal.feed(b"\x1b[44mabcd" + "日".encode())
        assert terminal.flowing_rows == {0}
        terminal.feed(b"\x1b[2;2Hx")
        assert (terminal.vt_rows(), terminal.flowing_rows) == read_anew(terminal)
        assert terminal.flowing_rows == frozenset()


def test_a_line_that_comes_to_wrap_after_it_was_read_flows() -> None:
    with Terminal(4, 10) as terminal:
        terminal.feed(b"0123456789")
        assert terminal.flowing_rows == frozenset()
        terminal.feed(b"a")
        assert terminal.flowing_rows == {0}


def test_more_terminals_than_views_are_all_read_right() -> None:
    terminals = [Terminal(3, 20) for _ in range(view._KEPT + 3)]
    handles = {terminal.handle for terminal in terminals}
    try:
        for turn in range(3):
            for number, terminal in enumerate(terminals):
                terminal.feed(b"%d in %d\r\n" % (turn, number))
                assert b"%d in %d" % (turn, number) in terminal.vt_rows()
        assert len(view._views) <= view._KEPT
    finally:
        for terminal in terminals:
            terminal.close()
    assert not handles & set(view._views)
