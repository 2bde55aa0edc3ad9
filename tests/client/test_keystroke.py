"""Names of keys from what terminals send."""

from __future__ import annotations

import pytest

from wsh.client.attach.keystroke import Keystroke, read_keystrokes


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (b"d", "d"),
        (b"D", "D"),
        (b" ", "space"),
        ("é".encode(), "é"),
        ("漢".encode(), "漢"),
        (b"\x03", "ctrl+c"),
        (b"\x00", "ctrl+space"),
        (b"\x1c", "ctrl+\\"),
        (b"\r", "enter"),
        (b"\x7f", "backspace"),
        (b"\x1b", "escape"),
        (b"\x1bv", "alt+v"),
        (b"\x1b<", "alt+<"),
        (b"\x1b\x03", "ctrl+alt+c"),
        (b"\x1b[A", "up"),
        (b"\x1bOA", "up"),
        (b"\x1b[1;5C", "ctrl+right"),
        (b"\x1b[5~", "pageup"),
        (b"\x1b[6;2~", "shift+pagedown"),
        (b"\x1b[Z", "shift+tab"),
        (b"\x1b[100u", "d"),
        (b"\x1b[100;1:1u", "d"),
        (b"\x1b[100;2u", "D"),
        (b"\x1b[100:68;2u", "D"),
        (b"\x1b[47;2;63u", "?"),
        (b"\x1b[47:63;2u", "?"),
        (b"\x1b[92;5u", "ctrl+\\"),
        (b"\x1b[92;69u", "ctrl+\\"),
        (b"\x1b[27;5;92~", "ctrl+\\"),
        (b"\x1b[27u", "escape"),
        (b"\x1b[13u", "enter"),
        (b"\x1b[57421u", "pageup"),
        (b"\x1b[100;1:3u", ""),
        (b"\x1b[57441;2u", ""),
        (b"\x1b[I", ""),
        (b"\x1b[?62;22c", ""),
        (b"\xff", "\ufffd"),
    ],
)
def test_a_key_has_its_name(sent: bytes, name: str) -> None:
    assert read_keystrokes(sent) == [Keystroke(name, sent)]


def test_keys_come_apart_and_nothing_is_lost() -> None:
    sent = b"a\x1b[A\x1b[200~x\x1cy\x1b[201~\x1b[<64;5;3M\x1b[<0;1;2M\x1b[<32;3;4M\x1b[<0;3;4mz"
    keys = read_keystrokes(sent)
    names = ["a", "up", "paste", "wheel_up", "mouse_press", "mouse_drag", "mouse_release", "z"]
    assert [key.name for key in keys] == names
    assert b"".join(key.raw for key in keys) == sent
    assert (keys[3].row, keys[3].col) == (2, 4)


@pytest.mark.parametrize(
    "junk", [b"\x1b[", b"\x1b[;;;;u", b"\x1b[999999999999u", b"\x1b[1;99999999u", b"\x1b[M", b"\x1bO", b"\xe6\xbc"]
)
def test_what_is_broken_off_or_senseless_raises_nothing(junk: bytes) -> None:
    assert b"".join(key.raw for key in read_keystrokes(junk)) == junk
