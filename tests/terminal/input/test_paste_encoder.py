"""Pasted text stays text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wsh.terminal import Terminal, encode_paste

START, END = b"\x1b[200~", b"\x1b[201~"


def test_a_paste_is_bracketed_where_the_program_asked_for_it() -> None:
    with Terminal() as terminal:
        assert encode_paste("one\ntwo", terminal) == b"one\rtwo"
        terminal.feed(b"\x1b[?2004h")
        assert encode_paste("one\ntwo\té", terminal) == START + "one\ntwo\té".encode() + END
        assert encode_paste("x", terminal, bracketed=False) == b"x"
        assert encode_paste("", terminal) == b""


def test_a_paste_cannot_end_its_own_bracket() -> None:
    for text in (
        "a\x1b[201~; rm -rf ~\n",
        "a\x1b[20\x1b[201~1~b",
        "a\x9b201~b",
        "a\x1b\x1b[201~[201~b",
        b"a\x1b[201~b",
        b"a\xc2\x9b201~b",
        b"a\x9b201~b",
    ):
        made = encode_paste(text, bracketed=True)
        assert made.startswith(START)
        assert made.endswith(END)
        inner = made[len(START) : -len(END)]
        assert b"\x1b" not in inner
        assert "\x9b" not in inner.decode()


def test_line_ends_of_windows_are_one_line_end() -> None:
    assert encode_paste("a\r\nb", bracketed=False) == b"a\rb"
    assert encode_paste("a\r\nb", bracketed=True) == START + b"a\nb" + END


@given(st.one_of(st.text(), st.binary()), st.booleans())
def test_no_paste_whatever_contains_a_control_sequence(text: str | bytes, bracketed: bool) -> None:
    made = encode_paste(text, bracketed=bracketed)
    inner = made[len(START) : -len(END)] if bracketed and made else made
    decoded = inner.decode()
    for character in decoded:
        assert character in "\t\n\r" or not (ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0)
