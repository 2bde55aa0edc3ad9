"""What a person's keys mean: bytes for the program, the prefix, and what follows it as a prefix."""

from __future__ import annotations

import pytest

from wsh.visual.input.keyboard import Area, Keyboard, move_mouse


def test_the_prefix_alone_and_twice_in_half_a_second() -> None:
    keys = Keyboard()
    assert list(keys.split(b"ab\x1ccd", 0.0)) == [b"ab", "release", b"cd"]
    assert list(keys.split(b"\x1c", 0.4)) == ["detach"]
    assert list(keys.split(b"\x1c", 0.5)) == ["release"]
    assert list(keys.split(b"\x1c", 1.1)) == ["release"]


@pytest.mark.parametrize(
    "prefix",
    [b"\x1c", b"\x1b[92;5u", b"\x1b[92;5:1u", b"\x1b[92:124;5u", b"\x1b[92;133u", b"\x1b[27;5;92~"],
)
def test_the_prefix_is_known_in_every_way_a_terminal_sends_it(prefix: bytes) -> None:
    assert list(Keyboard().split(b"x" + prefix, 0.0)) == [b"x", "release"]


def test_repeats_and_releases_of_the_prefix_are_nothing() -> None:
    keys = Keyboard()
    assert list(keys.split(b"\x1b[92;5u\x1b[92;5:2u\x1b[92;5:3u", 0.0)) == ["release"]


def test_behind_the_prefix_a_key_takes_over_and_arrows_move_a_window() -> None:
    keys = Keyboard()
    assert list(keys.split(b"\x1c\x14\x14", 0.0)) == ["release", "take", b"\x14"]
    assert list(keys.split(b"\x1c\x1b[A\x1b[B\x1bOC", 1.0, movable=True)) == ["release", "up", "down", "right"]
    assert list(keys.split(b"\x1b[1;5D", 1.4, movable=True)) == ["left"]
    assert list(keys.split(b"\x1b[D", 2.0, movable=True)) == [b"\x1b[D"]
    assert list(keys.split(b"\x1c\x1b[A", 3.0)) == ["release", b"\x1b[A"]


def test_what_is_pasted_is_never_a_key_also_in_pieces() -> None:
    keys = Keyboard()
    pieces = [*keys.split(b"\x1b[200~a\x1c", 0.0), *keys.split(b"\x1c\x14b", 0.1), *keys.split(b"\x1b[201~\x1c", 0.2)]
    assert pieces[-1] == "release"
    assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == b"\x1b[200~a\x1c\x1c\x14b\x1b[201~"


def test_a_backslash_behind_the_prefix_types_the_prefix_itself() -> None:
    keys = Keyboard()
    assert list(keys.split(b"\x1c\\\\", 0.0)) == ["release", b"\x1c", b"\\"]
    assert list(keys.split(b"\x1b[92;5u\x1b[92u", 1.0)) == ["release", b"\x1c"]
    assert list(keys.split(b"\x1c", 2.0)) == ["release"]
    assert list(keys.split(b"\\", 2.6)) == [b"\\"]


def test_a_button_that_is_released_beside_the_program_is_released_at_its_edge() -> None:
    area = Area(2, 0, 20, 80)
    assert move_mouse(b"\x1b[<0;5;10M\x1b[<32;5;23M\x1b[<0;90;24m", area) == b"\x1b[<0;5;8M\x1b[<0;80;20m"
    assert move_mouse(b"\x1b[<0;5;1M\x1b[<0;5;1m\x1b[<64;5;1M", area) == b"\x1b[<0;5;1m"
    assert move_mouse(b"\x1b[M %*\x1b[M@%7\x1b[M#%8", area) == b"\x1b[M %(\x1b[M#%4"
