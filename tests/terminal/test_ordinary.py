"""Much of what ordinary programs print, of the kinds that native emulators have died of. Each in a child."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.fuzz.campaign import attempt
from wsh.terminal import Terminal


def many_links(terminal: Terminal) -> None:
    for first in range(0, 60_000, 1000):
        terminal.feed(
            b"".join(
                b"\x1b]8;;https://example.org/%d\x1b\\%d\x1b]8;;\x1b\\ " % (n, n) for n in range(first, first + 1000)
            )
        )


def lines_of_links(terminal: Terminal) -> None:
    line = b" ".join(b"\x1b]8;id=%d;file:///tmp/%d\x07f%d\x1b]8;;\x07" % (n, n, n) for n in range(120))
    for _ in range(200):
        terminal.feed(line + b"\r\n")


def families(terminal: Terminal) -> None:
    terminal.feed(("👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 🏳️\u200d🌈 e\u0301 " * 40 + "\r\n").encode() * 300)


def long_addresses(terminal: Terminal) -> None:
    for number in range(500):
        terminal.feed(b"\x1b]8;;https://example.org/%d/%b\x07link\x1b]8;;\x07\r\n" % (number, b"x" * 2000))


def many_resizes(terminal: Terminal, count: int) -> None:
    chance = random.Random(7)
    terminal.feed(b"\x1b]8;;http://x/\x07some text that wraps, with a link, \x1b]8;;\x07and more of it \r\n" * 100)
    for number in range(count):
        terminal.resize(chance.randint(1, 60), chance.randint(1, 200))
        if number % 100 == 0:
            terminal.feed("日本語 e\u0301 👩\u200d🚀 text\r\n".encode())
            terminal.screen()
    terminal.resize(24, 80)


@pytest.mark.torture
@pytest.mark.parametrize("print_all", [many_links, lines_of_links, families, long_addresses, many_resizes])
def test_ordinary_output_in_quantity_is_survived(print_all: Callable[..., None], torture: bool) -> None:
    def work() -> None:
        with Terminal(24, 80) as terminal:
            if print_all is many_resizes:
                many_resizes(terminal, 4000 if torture else 1000)
            else:
                print_all(terminal)
            terminal.screen(True)
            terminal.scrollback(0, 1000, styled=True)
            terminal.replay(1000)
            Terminal.restore(terminal.snapshot()).close()
            terminal.feed(b"\x1bcstill here")
            assert terminal.screen(False).lines[0] == "still here"

    assert attempt(work, hang_s=120) == "lived"
