"""Properties that hold for any output whatever."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.terminal.fragment import STREAM, state_of
from wsh.terminal import Terminal, TerminalLimits

SIZES = st.tuples(st.integers(1, 8), st.integers(1, 24))
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(SIZES, STREAM, st.lists(st.integers(0, 400), max_size=6))
def test_where_the_output_is_split_makes_no_difference(size: tuple[int, int], stream: bytes, cuts: list[int]) -> None:
    with Terminal(*size) as whole, Terminal(*size) as parts:
        whole.feed(stream)
        at = 0
        for cut in sorted(cut for cut in cuts if cut < len(stream)):
            parts.feed(stream[at:cut])
            at = cut
        parts.feed(stream[at:])
        assert state_of(whole) == state_of(parts)
        assert whole.take_replies() == parts.take_replies()


@SETTINGS
@given(SIZES, STREAM, STREAM)
def test_a_restored_terminal_is_the_same_and_goes_on_the_same(
    size: tuple[int, int], before: bytes, after: bytes
) -> None:
    with Terminal(*size) as terminal:
        terminal.feed(before)
        with Terminal.restore(terminal.snapshot()) as restored:
            assert state_of(restored) == state_of(terminal)
            assert (restored.epoch, restored.first_line, restored.total_lines) == (
                terminal.epoch,
                terminal.first_line,
                terminal.total_lines,
            )
            terminal.take_replies()
            terminal.feed(after)
            restored.feed(after)
            assert state_of(restored) == state_of(terminal)
            if b"\x1bc" not in after:  # a reset under the alternate screen goes unnoticed after a restore
                assert (restored.epoch, restored.total_lines) == (terminal.epoch, terminal.total_lines)
            assert restored.take_replies() == terminal.take_replies()


@SETTINGS
@given(SIZES, STREAM)
def test_a_replay_brings_another_terminal_into_the_same_state(size: tuple[int, int], stream: bytes) -> None:
    with Terminal(*size) as terminal, Terminal(*size) as other:
        terminal.feed(stream)
        other.feed(terminal.replay())
        assert state_of(other) == state_of(terminal)
        assert other.take_replies() == b""


@SETTINGS
@given(SIZES, st.lists(STREAM, min_size=1, max_size=5))
def test_the_version_grows_exactly_when_a_row_has_changed(size: tuple[int, int], streams: list[bytes]) -> None:
    with Terminal(*size) as terminal:
        seen = list(terminal.vt_rows())
        version = terminal.version
        for stream in streams:
            terminal.feed(stream)
            rows = list(terminal.vt_rows())
            assert (terminal.version > version) == (rows != seen)
            seen, version = rows, terminal.version


@SETTINGS
@given(st.integers(0, 40), st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=12))
def test_line_numbers_stay_true_however_lines_come(kept: int, batches: list[tuple[int, bool]]) -> None:
    with Terminal(5, 30, TerminalLimits(scrollback_lines=kept)) as terminal:
        count = 0
        for size, pause in batches:
            terminal.feed(b"".join(b"%d\r\n" % (count + index) for index in range(size)))
            count += size
            if pause:
                page = terminal.scrollback(limit=1000)
                assert page.lines == [str(page.first_line + index) for index in range(len(page.lines) - 1)] + [""]
        assert terminal.total_lines == count + 1
        assert terminal.scrollback(limit=1000).total == min(count + 1, kept + 5)
