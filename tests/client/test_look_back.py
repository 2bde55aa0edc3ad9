"""Moving, searching and selecting among earlier lines, without a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from wsh.client.attach.history import History
from wsh.client.attach.keystroke import read_keystrokes
from wsh.client.attach.look_back import LookBackPage
from wsh.client.attach.page import Done


def history(lines: list[str], first: int = 0, cols: int = 80, wrapped: list[int] | None = None) -> History:
    """`wrapped`: the lines that go on in the next, as a server tells them; one of an earlier version does not."""
    told = {} if wrapped is None else {"wrapped": wrapped}

    def read(since: int, count: int) -> dict[str, Any]:
        start = min(max(since, first), first + len(lines))
        found = lines[start - first : start - first + count]
        page = {"epoch": 1, "lines": found, "total": len(lines), "total_lines": first + len(lines), "first_line": start}
        return page | told

    return History(read, cols)


def page_of(
    lines: list[str], first: int = 0, cols: int = 80, wrapped: list[int] | None = None, **more: Any
) -> LookBackPage:
    kept = history(lines, first, cols, wrapped)
    page = LookBackPage(kept, (kept.end - 1, 0), **more)
    page.show(11, 80)
    return page


def press(page: LookBackPage, keys: bytes) -> Done | None:
    for key in read_keystrokes(keys):
        done = page.press(key)
        if done is not None:
            return done
        page.show(11, 80)
    return None


def place(page: LookBackPage) -> tuple[int, int]:
    shown = page.show(11, 80)[0]
    cursor = shown["cursor"]
    assert isinstance(cursor, list)
    return cursor[0], cursor[1]


LINES = [f"line {n} of some words" for n in range(3000)]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (b"g", (0, 0)),
        (b"gG", (2999, 0)),
        (b"gjj", (2, 0)),
        (b"g\x1bxj", (1, 0)),
        (b"g5j", (5, 0)),
        (b"g12j2k", (10, 0)),
        (b"gw", (0, 5)),
        (b"gww", (0, 7)),
        (b"ge", (0, 3)),
        (b"g5w", (1, 0)),
        (b"gjb", (0, 15)),
        (b"g$", (0, 19)),
        (b"gll0", (0, 0)),
        (b"\x1b<\x0e\x0e\x10", (1, 0)),
        (b"g\x05", (1, 0)),
        (b"g\x06", (8, 0)),
        (b"g\x1b[6~\x1b[5~", (0, 0)),
        (b"gL", (9, 0)),
        (b"gM", (5, 0)),
        (b"gLlH", (0, 0)),
        (b"g/line 2500\r", (2500, 0)),
        (b"?line 17 \r", (17, 0)),
        (b"?some\rnn", (2996, 13)),
        (b"?some\rnN", (2998, 13)),
        (b"g\x13of\rn", (1, 7)),
        (b"g?line 2999\r", (2999, 0)),
        (b"/nowhere at all\r", (2999, 0)),
        (b"/x\x1bg", (0, 0)),
        (b"/x\x7f\x7fg", (0, 0)),
        (b"\x1b[200~g\x1b[201~", (2999, 0)),
    ],
)
def test_keys_move_the_cursor(keys: bytes, expected: tuple[int, int]) -> None:
    page = page_of(LINES)
    assert press(page, keys) is None
    assert place(page) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (b"gvly", "li"),
        (b"gvjy", "line 0 of some words\nl"),
        (b"gVjy", "line 0 of some words\nline 1 of some words\n"),
        (b"gjvky", "line 0 of some words\nl"),
        (b"gvlohy", "li"),
        (b"g\x00\x1bf\x1bw", "line"),
        (b"gvvy", ""),
        (b"gv\x1bq", ""),
        (b"q", ""),
        (b"\x03", ""),
        (b"\x1b", ""),
    ],
)
def test_what_is_selected_is_copied(keys: bytes, expected: str) -> None:
    done = press(page_of(LINES), keys)
    assert done is not None and done.copied == expected


def test_a_wrapped_line_is_copied_as_one_and_wide_characters_count_by_columns() -> None:
    page = page_of(["a" * 10, "bb", "漢字漢字漢", "end"], cols=10)
    done = press(page, b"gvGy")
    assert done is not None and done.copied == "a" * 10 + "bb\n漢字漢字漢e"
    page = page_of(["0123456789", "漢字漢字漢", "", "0123456789"])
    press(page, b"gllllljj")
    assert place(page) == (2, 0)
    press(page, b"j")
    assert place(page) == (3, 5), "the column that one came from"
    press(page, b"kk")
    assert place(page) == (1, 2)


def test_lines_that_are_gone_and_a_session_without_lines() -> None:
    page = page_of(LINES[:20], first=5000)
    press(page, b"g")
    assert place(page) == (5000, 0)
    empty = page_of([])
    for keys in (b"gGkjwbe$0v/x\rnNHML{}\x1b[<0;1;1M\x1b[<32;3;3M", b"y"):
        press(empty, keys)


def test_emacs_keys_win_where_the_setting_says_so() -> None:
    page = page_of(LINES, keys="emacs")
    press(page, b"\x1b<\x06\x06\x0e\x05")
    assert place(page) == (1, 19)
    press(page, b"\x02\x01")
    assert place(page) == (1, 0)


def test_a_counted_move_scrolls_no_further_than_it_must() -> None:
    page = page_of(LINES)
    press(page, b"g8j")
    assert page.show(11, 80)[0]["line"] == 0 and place(page) == (8, 0)
    press(page, b"3k")
    assert page.show(11, 80)[0]["line"] == 0 and place(page) == (5, 0)
    press(page, b"\x04")
    assert page.show(11, 80)[0]["line"] == 5, "half a page is turned"


def test_whole_lines_are_copied_also_where_the_screen_broke_them() -> None:
    page = page_of(["first", "a" * 10, "b" * 10, "cc", "last"], cols=10)
    done = press(page, b"gjjVy")
    assert done is not None and done.copied == "a" * 10 + "b" * 10 + "cc\n"
    done = press(page_of(["first", "a" * 10, "cc", "last"], cols=10), b"gVjy")
    assert done is not None and done.copied == "first\n" + "a" * 10 + "cc\n"


@pytest.mark.parametrize(
    ("lines", "wrapped", "expected"),
    [
        (["first", "abcdefghi", "abcdefghi", "abc", "last"], [1, 2], "abcdefghi abcdefghi abc\n"),
        (["first", "0123456789", "next", "last"], [], "0123456789\n"),
        (["first", "abcdefgh", "", "  abc", "last"], [1, 2], "abcdefgh" + 14 * " " + "abc\n"),
        (["first", "漢字漢字a", "字", "last"], [1], "漢字漢字a字\n"),
    ],
)
def test_where_a_line_was_broken_is_what_the_server_tells(lines: list[str], wrapped: list[int], expected: str) -> None:
    for keys in (b"gjVy", b"gj" + b"j" * len(wrapped) + b"Vy"):
        done = press(page_of(lines, cols=10, wrapped=wrapped), keys)
        assert done is not None and done.copied == expected


def test_a_wide_character_that_did_not_fit_leaves_no_blank_behind() -> None:
    done = press(page_of(["漢字漢字", "漢字", "a"], cols=9, wrapped=[0]), b"gVy")
    assert done is not None and done.copied == "漢字漢字漢字\n"


def test_a_search_finds_what_the_end_of_a_row_breaks() -> None:
    page = page_of(["first", "some words", "here, a ne", "edle", "no needle"], cols=10, wrapped=[1, 2])
    press(page, b"g/needle\r")
    assert place(page) == (2, 8)
    marks = page.show(11, 80)[0]["marks"]
    assert marks == [(2, 8, 10, "found"), (3, 0, 4, "found"), (4, 3, 9, "found")]
    press(page, b"n")
    assert place(page) == (4, 3)
    press(page, b"n")
    assert place(page) == (2, 8), "from the first line on"
    press(page, b"g/^here\r")
    assert place(page) == (0, 0), "a line begins where it was begun"
    # Of what was found above the first row, the rest is marked.
    page = page_of(["some nee", "dle", *[f"line {n}" for n in range(9)]], cols=8, wrapped=[0])
    press(page, b"g/needle\rG")
    shown = page.show(11, 80)[0]
    assert shown["line"] == 1 and shown["marks"] == [(1, 0, 3, "found")]
