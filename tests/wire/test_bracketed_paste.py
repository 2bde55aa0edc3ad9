"""Pasted text between its two marks, wherever the stream is cut."""

from __future__ import annotations

from wsh.terminal.input.key import parse_keys
from wsh.wire.bracketed_paste import (
    PASTE_BEGIN,
    PASTE_END,
    PastedPart,
    PasteInPieces,
    read_pasted,
    starts_paste,
    strip_marks,
)


def test_a_paste_ends_at_its_mark_and_goes_on_without_it() -> None:
    data = PASTE_BEGIN + b"ls\x03" + PASTE_END + b"q"
    assert starts_paste(data) and not starts_paste(data, 1)
    assert read_pasted(data, len(PASTE_BEGIN)) == PastedPart(b"ls\x03", len(data) - 1, False)
    assert read_pasted(b"ls", 0) == PastedPart(b"ls", 2, True)
    assert strip_marks(data[:-1]) == strip_marks(PASTE_BEGIN + b"ls\x03") == b"ls\x03"


def test_an_unfinished_paste_is_one_key_also_if_it_stops_at_a_line_end() -> None:
    assert parse_keys(PASTE_BEGIN + b"one\n") == [("paste", PASTE_BEGIN + b"one\n")]


def test_a_paste_ends_at_its_mark_wherever_that_is_cut() -> None:
    data = b"a\x1b[20b" + PASTE_END + b"q"
    for first in range(len(data)):
        for second in range(first, len(data)):
            paste, text, rest = PasteInPieces(), b"", b""
            paste.open()
            for piece in (data[:first], data[first:second], data[second:]):
                at = 0
                if paste.is_open:
                    part, at, _ = paste.read(piece, 0)
                    text += part
                rest += piece[at:]
            assert (text, rest, paste.is_open) == (b"a\x1b[20b", b"q", False), (first, second)
