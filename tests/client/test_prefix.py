"""Which keys of a person are the viewer's own, and that all others reach the program as they are."""

from __future__ import annotations

import random

import pytest

from wsh.client.attach.prefix import COMMANDS, Bindings, Prefix
from wsh.wire.setting import SettingError


def split(prefix: Prefix, data: bytes, now: float = 0.0, is_window: bool = False) -> list[bytes | str]:
    return list(prefix.split(data, now, is_window))


@pytest.mark.parametrize(
    "sent", [b"\x1c", b"\x1b[92;5u", b"\x1b[92;5:1u", b"\x1b[92:124;5u", b"\x1b[92;133u", b"\x1b[27;5;92~"]
)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_behind_every_form_of_the_prefix(sent: bytes, command: object) -> None:
    name, key = command.name, command.key  # type: ignore[attr-defined]
    pressed = b"\x1a" if key == "ctrl+z" else key.encode()
    assert split(Prefix(Bindings()), b"a" + sent + pressed + b"b") == [b"a", "open", name, b"b"]


def test_twice_detaches_however_it_is_sent() -> None:
    assert split(Prefix(Bindings()), b"\x1c\x1c") == ["open", "detach"]
    assert split(Prefix(Bindings()), b"\x1b[92;5u\x1b[92;5:3u\x1b[92;5u") == ["open", "detach"]
    prefix = Prefix(Bindings())
    assert split(prefix, b"\x1c", 0.0) == ["open"] and split(prefix, b"\x1c", 100.0) == ["detach"]


def test_a_key_that_means_nothing_is_told_and_is_not_typed() -> None:
    assert split(Prefix(Bindings()), b"\x1cxyz") == ["open", "unknown", b"yz"]
    prefix = Prefix(Bindings())
    assert split(prefix, b"\x1c\x1bx") == ["open", "unknown"] and prefix.unknown == "alt+x"
    assert split(Prefix(Bindings()), b"\x1c\x1b[A") == ["open", "unknown"], "an arrow where nothing moves"
    assert split(Prefix(Bindings()), b"\x1c\x1b") == ["open", "cancel"]


def test_reports_and_pasted_text_are_no_keys() -> None:
    prefix = Prefix(Bindings())
    assert split(prefix, b"\x1c\x1b[I\x1b[<35;1;1Md") == ["open", b"\x1b[I", b"\x1b[<35;1;1M", "detach"]
    pasted = b"\x1b[200~\x1cd\x1b[201~"
    assert b"".join(piece for piece in split(prefix, pasted) if isinstance(piece, bytes)) == pasted
    assert split(prefix, b"\x1b[200~a\x1c") == [b"\x1b[200~", b"a\x1c"]
    assert split(prefix, b"\x1cb\x1b[201~\x1c") == [b"\x1cb\x1b[201~", "open"]
    prefix.close()
    assert split(prefix, b"\x1c" + pasted) == ["open", "cancel", b"\x1b[200~", b"\x1cd\x1b[201~"]


def test_the_prefix_is_one_again_behind_a_paste_whose_end_came_in_two_reads() -> None:
    prefix = Prefix(Bindings())
    assert split(prefix, b"\x1b[200~a\x1c\x1b[20") == [b"\x1b[200~", b"a\x1c\x1b[20"]
    assert split(prefix, b"1~\x1cd") == [b"1~", "open", "detach"]


def test_arrows_move_a_window_for_half_a_second_on() -> None:
    prefix = Prefix(Bindings())
    assert split(prefix, b"\x1c\x1b[A\x1bOB", 0.0, True) == ["open", "up", "down"]
    assert split(prefix, b"\x1b[1;5D", 0.4, True) == ["left"]
    assert split(prefix, b"\x1b[D", 1.0, True) == [b"\x1b[D"]
    assert split(prefix, b"\x1c\x1b[Ad", 2.0, True) == ["open", "up", b"d"], "behind an arrow only arrows count"


def test_what_does_not_hold_the_prefix_passes_in_one_piece() -> None:
    chance = random.Random(1)
    prefix = Prefix(Bindings())
    for _ in range(500):
        data = bytes(chance.choice([byte for byte in range(256) if byte != 0x1C]) for _ in range(40))
        if b"\x1b[200~" not in data and b"\x1b[92" not in data and b"\x1b[27;5;92~" not in data:
            assert split(prefix, data) == [data]


def test_other_keys_and_a_prefix_that_cannot_be() -> None:
    bindings = Bindings("Ctrl+B", ["detach=x", "scroll = pageup"])
    assert bindings.shown == "Ctrl+B" and bindings.literal == b"\x02"
    assert split(Prefix(bindings), b"\x02x\x02\x1b[5~\x02\x02") == [
        "open",
        "detach",
        "open",
        "scroll",
        "open",
        "detach",
    ]
    assert "x detach · pageup scroll" in bindings.hint(100)
    for prefix, changes in (
        ("f1", []),
        ("ctrl+", []),
        ("ctrl+é", []),
        ("ctrl+b", ["nothing=x"]),
        ("ctrl+b", ["help=d"]),
    ):
        with pytest.raises(SettingError):
            Bindings(prefix, changes)


def test_the_hint_fits() -> None:
    whole = "? help · d detach · [ scroll · s sessions · t take over · c capture · \\ literal"
    assert Bindings().hint(80) == whole
    for width in range(1, 80):
        assert len(Bindings().hint(width)) < max(2, width + 1) and whole.startswith(Bindings().hint(width))
