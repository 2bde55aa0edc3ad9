"""Patterns and texts that are not ASCII alone: the same is found by either matcher, and little is kept of a text besides itself."""

from __future__ import annotations

import tracemalloc

import pytest

from wsh.workspace.search.scan import PatternMatcher, SearchedText


@pytest.mark.parametrize("pattern", [r"(?i)[x-\u017f]", r"(?i)[x-\u212a]", r"(?i)[^x-\u017f]"])
def test_a_range_beyond_ascii_finds_letters_that_are_others_without_regard_to_case(pattern: str) -> None:
    data = b"s k S K a"
    matcher = PatternMatcher(pattern)
    assert matcher.find(SearchedText(data)) == matcher._find_characters(data)


def test_a_text_with_very_many_foreign_lines_keeps_none_of_them_at_hand() -> None:
    matcher = PatternMatcher(r"\w\d\w")
    text = SearchedText("é\na\n".encode() * 20_000)
    few = SearchedText(("é\n" + "plain and long enough to be the usual case\n" * 9).encode() * 200)
    tracemalloc.start()
    try:
        for each in (text, few):
            matcher.find(each)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(text.data) + len(few.data)
    assert few.foreign is few.foreign and len(few.foreign) == 200, "the usual text is looked at once"
