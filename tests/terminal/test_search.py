"""Finding text in what is kept."""

from __future__ import annotations

import pytest

from wsh.terminal import Match, Terminal
from wsh.wire.error import InvalidPattern


def test_text_is_found_by_line_and_column_in_screen_and_scrollback() -> None:
    with Terminal(4, 40) as terminal:
        terminal.feed(b"".join(b"line %d needle\r\n" % number for number in range(100)))
        found = terminal.search("needle")
        assert len(found) == 100
        assert found[0] == Match(0, 7, 13, "needle")
        assert found[-1] == Match(99, 8, 14, "needle")
        assert terminal.search("needle", newest_first=True, limit=2) == [found[99], found[98]]
        assert terminal.search("needle", since_line=98) == found[98:]
        assert terminal.search("needle", limit=3) == found[:3]


def test_case_matters_unless_told_and_literal_text_is_literal() -> None:
    with Terminal(4, 40) as terminal:
        terminal.feed(b"a.c ABC abc")
        assert [match.start for match in terminal.search("a.c")] == [0]
        assert [match.start for match in terminal.search("abc", ignore_case=True)] == [4, 8]
        assert [match.text for match in terminal.search("a.c", regex=True)] == ["a.c", "abc"]


def test_text_that_wraps_is_found_as_it_was_printed() -> None:
    with Terminal(4, 10) as terminal:
        terminal.feed("12345678 needle tail\r\nab日本語日本 x".encode())
        assert terminal.search("needle") == [Match(0, 9, 10, "needle")]
        assert terminal.search("8 n") == [Match(0, 7, 10, "8 n")]
        assert terminal.search("日本 x") == [Match(2, 8, 10, "日本 x")]
        assert terminal.search("本語") == [Match(2, 4, 8, "本語")]


def test_a_bad_expression_is_refused() -> None:
    with Terminal() as terminal:
        for pattern, regex in (("(", True), ("", False)):
            with pytest.raises(InvalidPattern):
                terminal.search(pattern, regex=regex)


def test_an_expression_that_matches_nothing_much_finds_nothing() -> None:
    with Terminal() as terminal:
        terminal.feed(b"abc")
        assert terminal.search("x*", regex=True) == []
