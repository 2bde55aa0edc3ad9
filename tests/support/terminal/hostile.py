"""Feeds one kind of hostile output to a terminal and prints what became of it. Run as a process of its own."""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable

from wsh.terminal import Terminal

KIB = 1024


def flood(piece: bytes, *, after: bytes = b"") -> Callable[[Terminal, int], None]:
    """`total` bytes of a repeated piece, in chunks as a pty would give them."""

    def run(terminal: Terminal, total: int) -> None:
        terminal.feed(after)
        chunk = piece * max(1, 64 * KIB // len(piece))
        for _ in range(max(1, total // len(chunk))):
            terminal.feed(chunk)

    return run


def noise(terminal: Terminal, total: int) -> None:
    generator = random.Random(7)
    for _ in range(total // (64 * KIB)):
        terminal.feed(generator.randbytes(64 * KIB))


def styles(terminal: Terminal, total: int) -> None:
    generator = random.Random(7)
    for _ in range(total // 36_000):
        terminal.feed(
            b"".join(b"\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dmx" % tuple(generator.randbytes(6)) for _ in range(1000))
        )


def links(terminal: Terminal, total: int) -> None:
    for number in range(total // 220):
        terminal.feed(b"\x1b]8;;http://%d/%b\x07x" % (number, b"y" * 200))


def resizes(terminal: Terminal, total: int) -> None:
    generator = random.Random(7)
    terminal.feed(b"some text that is long enough to wrap around " * 2000)
    for _ in range(40):
        terminal.feed(b"some text that is long enough to wrap around " * 20)
        terminal.resize(generator.choice([1, 2, 24, 1000]), generator.choice([1, 2, 80, 1000]))
        terminal.screen()
        terminal.scrollback()
    terminal.resize(24, 80)


KINDS: dict[str, Callable[[Terminal, int], None]] = {
    "one line": flood(b"x"),
    "wide line": flood("日本".encode()),
    "title without end": flood(b"x", after=b"\x1b]2;"),
    "clipboard without end": flood(b"QUJD", after=b"\x1b]52;c;"),
    "link without end": flood(b"x", after=b"\x1b]8;;"),
    "device string without end": flood(b"x", after=b"\x1bP"),
    "capability string without end": flood(b"41", after=b"\x1bP+q"),
    "application string without end": flood(b"x", after=b"\x1b_"),
    "image without end": flood(b"AAAA", after=b"\x1b_Ga=T,f=24,s=10,v=10;"),
    "images": flood(b"\x1b_Gm=1,i=1,f=24,s=1000,v=1000;" + b"AAAA" * 1000 + b"\x1b\\"),
    "parameters without end": flood(b"1;", after=b"\x1b["),
    "combining marks": flood("\u0301".encode(), after=b"e"),
    "combining marks everywhere": flood(("e" + "\u0301" * 20).encode()),
    "joiners": flood("\U0001f468\u200d".encode()),
    "noise": noise,
    "styles": styles,
    "links": links,
    "questions": flood(b"\x1b[6n\x1b[c"),
    "bells": flood(b"\x07"),
    "notifications": flood(b"\x1b]9;" + b"n" * 3000 + b"\x07"),
    "keyboard pushes": flood(b"\x1b[>1u"),
    "titles": flood(b"\x1b]2;x\x07"),
    "repetitions": flood(b"x\x1b[65535b"),
    "scrolls": flood(b"\x1b[24S"),
    "switches": flood(b"\x1b[?1049hx\x1b[?1049l"),
    "resizes": resizes,
}


def main() -> None:
    kind, total = sys.argv[1], int(sys.argv[2])
    with Terminal() as terminal:
        terminal.feed(b"warm\r\n")
        terminal.screen()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        KINDS[kind](terminal, total)
        seconds = time.perf_counter() - started
        terminal.screen()
        terminal.scrollback(styled=True)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        waiting = len(terminal.take_replies()) + len(terminal.take_events())
        # whatever it was, cancel and a reset end it
        terminal.feed(b"\x18\x1b\\\x1bcstill here")
        print(
            json.dumps(
                {
                    "grown_kib": grown,
                    "seconds": seconds,
                    "waiting": waiting,
                    "first": terminal.screen(False).lines[0],
                    "cursor": [terminal.cursor.row, terminal.cursor.col],
                    "rows": len(terminal.screen(True).lines),
                }
            )
        )


if __name__ == "__main__":
    main()
