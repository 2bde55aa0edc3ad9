"""Pasted text between its two marks, wherever the stream is cut."""

from __future__ import annotations

from wsh.terminal.input.key import parse_keys
from wsh.wire.bracketed_paste import PASTE_BEGIN, PASTE_END, PastedPart, read_pasted, starts_paste, strip_marks


def test_a_paste_ends_at_its_mark_and_goes_on_without_it() -> None:
    data = PASTE_BEGIN + b"ls\x03" + PASTE_END + b"q"
    assert starts_paste(data) and not starts_paste(data, 1)
    assert read_pasted(data, len(PASTE_BEGIN)) == PastedPart(b"ls\x03", len(data) - 1, False)
    assert read_pasted(b"ls", 0) == PastedPart(b"ls", 2, True)
    assert strip_marks(data[:-1]) == strip_marks(PASTE_BEGIN + b"ls\x03") == b"ls\x03"


def test_an_unfinished_paste_is_one_key_also_if_it_stops_at_a_line_end() -> None:
    assert parse_keys(PASTE_BEGIN + b"one\n") == [("paste", PASTE_BEGIN + b"one\n")]
