"""Names of keys to bytes and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsh.terminal import Terminal, encode_key, encode_keys, encode_mouse, parse_keys
from wsh.wire.error import InvalidKey

PLAIN = [
    ("ctrl+c", b"\x03"),
    ("Ctrl+C", b"\x03"),
    ("C-c", b"\x03"),
    ("^C", b"\x03"),
    ("ctrl+d", b"\x04"),
    ("ctrl+z", b"\x1a"),
    ("ctrl+[", b"\x1b"),
    ("ctrl+\\", b"\x1c"),
    ("ctrl+space", b"\x00"),
    ("ctrl+i", b"\t"),
    ("ctrl+m", b"\r"),
    ("enter", b"\r"),
    ("return", b"\r"),
    ("ctrl+enter", b"\r"),
    ("tab", b"\t"),
    ("shift+tab", b"\x1b[Z"),
    ("backtab", b"\x1b[Z"),
    ("escape", b"\x1b"),
    ("esc", b"\x1b"),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("alt+backspace", b"\x1b\x7f"),
    ("delete", b"\x1b[3~"),
    ("insert", b"\x1b[2~"),
    ("home", b"\x1b[H"),
    ("end", b"\x1b[F"),
    ("pageup", b"\x1b[5~"),
    ("page_down", b"\x1b[6~"),
    ("up", b"\x1b[A"),
    ("arrowdown", b"\x1b[B"),
    ("alt+left", b"\x1b[1;3D"),
    ("ctrl+shift+right", b"\x1b[1;6C"),
    ("f1", b"\x1bOP"),
    ("f5", b"\x1b[15~"),
    ("shift+f5", b"\x1b[15;2~"),
    ("f12", b"\x1b[24~"),
    ("a", b"a"),
    ("A", b"A"),
    ("shift+a", b"A"),
    ("alt+x", b"\x1bx"),
    ("alt+shift+x", b"\x1bX"),
    ("ctrl+alt+x", b"\x1b\x18"),
    ("é", "é".encode()),
    ("日", "日".encode()),
    ("👩‍🚀", "👩‍🚀".encode()),
    ("+", b"+"),
    ("-", b"-"),
    ("plus", b"+"),
    ("alt++", b"\x1b+"),
    ("1", b"1"),
    ("~", b"~"),
]


@pytest.mark.parametrize(("name", "raw"), PLAIN)
def test_a_key_sends_what_every_terminal_sends(name: str, raw: bytes) -> None:
    with Terminal() as terminal:
        assert encode_key(name, terminal) == raw
    assert encode_key(name) == raw


@pytest.mark.parametrize("name", ["", "banana", "ctrl+banana", "ctrl+", "f99", "\x01", "super+a", "hyper+x", "ab"])
def test_a_name_that_is_no_key_is_refused(name: str) -> None:
    with pytest.raises(InvalidKey):
        encode_key(name)


def test_keys_follow_application_cursor_mode() -> None:
    with Terminal() as terminal:
        terminal.feed(b"\x1b[?1h")
        assert encode_key("up", terminal) == b"\x1bOA"
        assert encode_key("home", terminal) == b"\x1bOH"
        terminal.feed(b"\x1b[?1l")
        assert encode_key("up", terminal) == b"\x1b[A"


def test_keys_follow_the_kitty_protocol() -> None:
    with Terminal() as terminal:
        terminal.feed(b"\x1b[>1u")
        assert encode_key("ctrl+c", terminal) == b"\x1b[99;5u"
        assert encode_key("escape", terminal) == b"\x1b[27u"
        assert encode_key("a", terminal) == b"a"
        assert encode_key("super+a", terminal) == b"\x1b[97;9u"
        assert encode_key("ctrl+enter", terminal) == b"\x1b[13;5u"
        terminal.feed(b"\x1b[>3u")  # press and release are told apart
        assert encode_key("up", terminal) == b"\x1b[1;1:1A\x1b[1;1:3A"
        terminal.feed(b"\x1b[<2u")
        assert encode_key("ctrl+c", terminal) == b"\x03"


def test_keys_in_a_row_are_sent_in_a_row() -> None:
    assert encode_keys("ctrl+x ctrl+s") == b"\x18\x13"
    assert encode_keys("escape : w q enter") == b"\x1b:wq\r"
    with pytest.raises(InvalidKey):
        encode_keys("ctrl+x nonsense")
    with pytest.raises(InvalidKey):
        encode_keys("  ")


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (b"a\x03\r", ["a", "ctrl+c", "enter"]),
        (b"\x1b[A\x1bOA\x1b[1;5D", ["up", "up", "ctrl+left"]),
        (b"\x1b[Z\x1b[3~\x1b[15;2~", ["shift+tab", "delete", "shift+f5"]),
        (b"\x1bx\x1b\r\x1b\x7f", ["alt+x", "alt+enter", "alt+backspace"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[99;5u\x1b[13;2u\x1b[27u", ["ctrl+c", "shift+enter", "escape"]),
        (b"\x1b[1;1:3A", ["release"]),
        (b"\x1b[27;5;13~", ["ctrl+enter"]),
        ("é日".encode(), ["é", "日"]),
        (b"\x1b[<0;5;6M", ["mouse"]),
        (b"\x1b[200~two words\x1b[201~x", ["paste", "x"]),
        (b"\x1b[I\x1b[O", ["focus", "blur"]),
        (b" \t\x00\x1c\x1f", ["space", "tab", "ctrl+space", "ctrl+\\", "ctrl+_"]),
        (b"\xff\x1b[999z", ["unknown", "unknown"]),
    ],
)
def test_captured_input_is_named(raw: bytes, names: list[str]) -> None:
    parsed = parse_keys(raw)
    assert [name for name, _ in parsed] == names
    assert b"".join(part for _, part in parsed) == raw


@given(st.binary(max_size=40))
def test_parsing_input_loses_no_byte(raw: bytes) -> None:
    assert b"".join(part for _, part in parse_keys(raw)) == raw


@pytest.mark.parametrize("name", [name for name, raw in PLAIN if name == name.lower() and len(raw) > 1])
def test_a_name_survives_the_way_there_and_back(name: str) -> None:
    raw = encode_key(name)
    parsed = parse_keys(raw)
    assert b"".join(encode_key(found) for found, _ in parsed if found != "unknown") == raw or not name.isascii()


def test_the_mouse_speaks_only_when_asked_and_in_the_format_asked_for() -> None:
    with Terminal(10, 40) as terminal:
        assert encode_mouse(terminal, "press", 3, 5, "left") == b""
        terminal.feed(b"\x1b[?1000h")
        assert encode_mouse(terminal, "press", 3, 5, "left") == b"\x1b[M" + bytes([32, 32 + 6, 32 + 4])
        terminal.feed(b"\x1b[?1006h")
        assert encode_mouse(terminal, "press", 3, 5, "left") == b"\x1b[<0;6;4M"
        assert encode_mouse(terminal, "release", 3, 5, "left") == b"\x1b[<0;6;4m"
        assert encode_mouse(terminal, "press", 3, 5, "wheel_down") == b"\x1b[<65;6;4M"
        assert encode_mouse(terminal, "press", 99, 99, "right", ctrl=True) == b"\x1b[<18;40;10M"
        assert encode_mouse(terminal, "motion", 1, 1) == b""
        terminal.feed(b"\x1b[?1003h")
        assert encode_mouse(terminal, "motion", 1, 1) == b"\x1b[<35;2;2M"
        assert encode_mouse(terminal, "motion", 1, 2, "left") == b"\x1b[<32;3;2M"
