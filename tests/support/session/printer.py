"""Programs that print what is known beforehand, slowly: `python printer.py KIND COUNT PAUSE_S`.

The terminal is raw, so that what is written is what is read. Every kind is a list of writes per step, cut where it hurts.
"""

from __future__ import annotations

import collections
import os
import random
import re
import select
import sys
import time
import tty

KINDS = ("plain", "coloured", "queries", "random", "split", "wide", "titled", "burst")


def writes(kind: str, n: int) -> list[bytes]:
    """What step `n` writes, write by write."""
    if kind == "coloured":
        return [b"\x1b[3%d;1mline %d\x1b[0m\r\n" % (n % 8, n)]
    if kind == "queries":  # each carries a number that its answer repeats, so that an answer sent twice shows
        return [b"\x1b[?%d$pline %d\r\n" % (3000 + n, n)]
    if kind == "random":
        return [random.Random(n).randbytes(40)]
    if kind == "split":
        return [b"\x1b[3", b"%d;" % (n % 8), b"4mline %d\x1b" % n, b"[0", b"m\r\n"]
    if kind == "wide":
        text = f"line {n} — 中文 é 😀\r\n".encode()
        cut = 5 + n % (len(text) - 6)
        return [text[:cut], text[cut:]]
    if kind == "titled":
        return [b"\x1b]2;title", b" %d\x07line %d\r\n" % (n, n)]
    if kind == "burst":
        return [b"".join(b"line %d.%d\r\n" % (n, m) for m in range(20))] if n % 20 == 0 else []
    return [b"line %d\r\n" % n]


def printed(kind: str, count: int) -> bytes:
    return b"".join(piece for n in range(count) for piece in writes(kind, n))


def main(kind: str, count: int, pause_s: float) -> None:
    tty.setraw(0)
    heard = b""
    for n in range(count):
        for piece in writes(kind, n):
            os.write(1, piece)
        time.sleep(pause_s)
        while select.select([0], [], [], 0)[0]:
            heard += os.read(0, 65536)
    if kind == "queries":
        while select.select([0], [], [], 1.0)[0]:
            heard += os.read(0, 65536)
        counts = collections.Counter(re.findall(rb"\[\?([0-9]+);", heard))
        os.write(1, b"answered %d most %d\r\n" % (len(counts), max(counts.values(), default=0)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
