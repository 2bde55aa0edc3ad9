"""A viewer that is smaller than the session follows the cursor, and what it shows is a part of the one picture."""

from __future__ import annotations

import pytest

from tests.support.session.running import open_quiet, run_with_registry
from tests.support.waiting import until
from tests.visual.test_viewer import look, viewers_of
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.visual.picture.following import follow_col, follow_row
from wsh.wire.system.place import Places


@pytest.mark.parametrize(
    ("top", "row", "expected"), [(0, 0, 0), (0, 9, 0), (0, 10, 1), (5, 5, 5), (5, 4, 0), (15, 12, 12), (5, 29, 20)]
)
def test_rows_move_as_little_as_they_must(top: int, row: int, expected: int) -> None:
    assert follow_row(top, 10, row) == expected


@pytest.mark.parametrize(
    ("left", "col", "expected"), [(0, 0, 0), (0, 59, 0), (0, 60, 30), (30, 89, 30), (30, 59, 0), (30, 90, 60)]
)
def test_columns_begin_at_the_first_one_or_move_by_half_a_window(left: int, col: int, expected: int) -> None:
    assert follow_col(left, 60, col) == expected


def test_a_small_viewer_sees_the_prompt_after_many_lines_and_again_after_a_clear(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, name="large", rows=30, cols=100)
        viewers = viewers_of(session, "fixed")
        _, seen = look(viewers, 15, 60, status=True)
        _, beside = look(viewers, 15, 60, status=True)
        before = seen.sent_bytes
        await session.input.send(b"seq 50; echo la''st\r", Actor("agent", "a"))
        await until(lambda: "last" in seen.lines, str(seen.lines))
        await until(lambda: seen.lines[11:13] == ["50", "last"], str(seen.lines))
        assert (session.rows, session.cols) == (30, 100)
        assert "60×14 of 100×30" in seen.lines[14]
        assert seen.lines == beside.lines
        await session.input.send(b"printf '\\033[H\\033[2J'; echo fi''rst\r", Actor("agent", "a"))
        await until(lambda: seen.lines[0] == "first", "the first row", seen=lambda: seen.lines)
        assert seen.sent_bytes > before

    run_with_registry(places, work)


def test_a_window_that_a_person_moved_stays_until_they_type(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(
            SessionSpec(command="printf '%s\\n' top 2 3 4 5 6 7 8 9; printf 'bottom '; cat", rows=10, cols=40)
        )
        await session.wait(WaitSpec(text="bottom", generation=0))
        viewers = viewers_of(session, "fixed")
        viewer, seen = look(viewers, 5, 20)
        assert seen.lines[4] == "bottom"
        viewers.frames.move(viewer, 0, 0)
        await until(lambda: seen.lines[0] == "top", str(seen.lines))
        await session.input.send(b"x", Actor("agent", "a"))
        await session.wait(WaitSpec(text="bottom x"))
        viewers.frames.make()
        assert seen.lines[0] == "top"
        viewers.keys.press(viewer, b"y")
        await until(lambda: seen.lines[4] == "bottom xy", str(seen.lines))

    run_with_registry(places, work)


def test_a_long_line_is_followed_to_the_side_with_links_colours_and_wide_characters(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        text = "\\033[38;2;1;2;3m\\033]8;;http://a.b/\\033\\\\漢字\\033]8;;\\033\\\\\\033[0m"
        session = await registry.open_session(
            SessionSpec(command=f"printf '%41s{text}%10s' here there; cat", rows=4, cols=80)
        )
        await session.wait(WaitSpec(text="there", generation=0))
        viewers = viewers_of(session, "fixed")
        viewer, seen = look(viewers, 4, 30)
        assert viewer.left == 40
        spans = seen.terminal.styled_rows(0, 0)[0]
        assert [span["text"] for span in spans] == ["e", "漢字", "     there"]
        assert spans[1]["fg"] == {"rgb": {"r": 1, "g": 2, "b": 3}} and spans[1]["link"] == "http://a.b/"
        cursor = seen.terminal.cursor
        assert (cursor.row, cursor.col) == (0, 15)

    run_with_registry(places, work)


def test_whoever_only_looks_follows_again_with_the_next_key(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(
            SessionSpec(command="printf '%s\\n' top 2 3 4 5 6 7 8 9; printf 'bottom '; cat", rows=10, cols=40)
        )
        await session.wait(WaitSpec(text="bottom", generation=0))
        viewers = viewers_of(session)
        viewer, seen = look(viewers, 5, 20, read_only=True, status=True)
        assert "until you type" not in seen.lines[4]
        viewers.frames.move(viewer, 0, 0)
        await until(lambda: seen.lines[0] == "top", "the top", seen=lambda: seen.lines)
        viewers.keys.press(viewer, b"x")
        await until(lambda: seen.lines[3] == "bottom", "the cursor", seen=lambda: seen.lines)
        assert (session.rows, session.cols) == (10, 40)

    run_with_registry(places, work)
