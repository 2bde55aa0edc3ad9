"""Cases out of numbers: the same number gives the same case."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz.case import LOOKS, Case, Step

_RECORDINGS = Path(__file__).parent.parent / "terminal" / "recordings"
_SIDES = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    10,
    15,
    16,
    17,
    24,
    31,
    33,
    40,
    63,
    64,
    65,
    79,
    80,
    81,
    82,
    100,
    127,
    132,
    200,
    255,
    300,
)
_COUNTS = (0, 1, 1, 1, 2, 2, 3, 5, 8, 10, 40, 80, 82, 99, 255, 999)
_HUGE_COUNTS = (*_COUNTS, 9999, 32767, 65535, 65536, 99999)
_HUGE = 0.03
"""Of the cases repeat and scroll by huge counts: ten of those take as long as a thousand others."""
_FINALS = b"@ABCDEFGHIJKLMPSTXZ`abcdefghilmnqrstu"
_MODES = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    9,
    12,
    25,
    40,
    45,
    47,
    66,
    67,
    69,
    95,
    1000,
    1003,
    1006,
    1047,
    1048,
    1049,
    2004,
    2026,
    2027,
    2048,
)
_WIDE = (
    "日本語",
    "👩\u200d🚀",
    "👨\u200d👩\u200d👧\u200d👦",
    "👩",
    "🙂",
    "e\u0301",
    "e" + "\u0301" * 5,
    "한글",
    "🇩🇪",
    "☎\ufe0f",
    "\u200d",
    "\ufe0f",
    "\u0301",
    "ก็",
    "\u00ad",
    "\u2028",
    "\U0010ffff",
)


def corpora() -> list[bytes]:
    return [path.read_bytes() for path in sorted(_RECORDINGS.glob("*.vt"))]


class Generator:
    def __init__(self, seed: int, corpus: list[bytes]) -> None:
        self.chance = random.Random(seed)
        self.corpus = corpus
        self.counts = _HUGE_COUNTS if self.chance.random() < _HUGE else _COUNTS

    def case(self) -> Case:
        chance = self.chance
        rows, cols = chance.choice(_SIDES), chance.choice(_SIDES)
        steps: list[Step] = []
        for _ in range(chance.randint(1, 10)):
            steps.append(Step("feed", self._output()))
            if chance.random() < 0.5:
                steps.append(self._other())
        steps += [Step("screen"), Step("restore"), Step("screen")]
        return Case(rows, cols, tuple(steps))

    def _other(self) -> Step:
        chance = self.chance
        if chance.random() < 0.4:
            return Step("resize", b"", chance.choice(_SIDES), chance.choice(_SIDES))
        return Step(chance.choice(list(LOOKS)))

    def _output(self) -> bytes:
        chance = self.chance
        kind = chance.random()
        if kind < 0.15:
            return chance.randbytes(chance.choice((10, 100, 1000, 10_000)))
        if kind < 0.35 and self.corpus:
            return self._mutated()
        pieces = [self._piece() for _ in range(chance.choice((3, 10, 30, 100, 300, 1000, 3000)))]
        return (self._scene() if kind < 0.6 else b"") + b"".join(pieces)

    def _scene(self) -> bytes:
        """States from which more goes wrong: a screen full of links, styles or joined characters, margins, odd modes."""
        chance = self.chance
        parts = [
            self._link(),
            chance.choice(_WIDE).encode() + b"\x1b[%db" % chance.choice(self.counts),
            b"\x1b[?69h\x1b[%d;%ds" % (chance.randint(1, 20), chance.randint(1, 90)),
            b"\x1b[%d;%dr" % (chance.randint(1, 20), chance.randint(1, 90)),
            b"\x1b[?%dh" % chance.choice(_MODES),
            b"\x1b[%d%c" % (chance.choice(self.counts), chance.choice(b"STLM@PX")),
            self._style(),
        ]
        chance.shuffle(parts)
        return b"".join(parts[: chance.randint(1, len(parts))])

    def _mutated(self) -> bytes:
        chance = self.chance
        source = chance.choice(self.corpus)
        start = chance.randrange(len(source))
        data = bytearray((source[start:] + source * 4)[: chance.choice((100, 1000, 8000, 30_000))])
        for _ in range(chance.randint(1, 1 + len(data) // 50)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(4):
                case 0:
                    data[at:at] = self._piece()
                case 1:
                    del data[at : at + chance.randint(1, 8)]
                case 2:
                    data[at : at + 1] = chance.randbytes(1)
                case _:
                    other = chance.randrange(len(data) + 1)
                    data[at:at] = data[other : other + chance.randint(1, 40)]
        return bytes(data)

    def _piece(self) -> bytes:
        chance = self.chance
        kind = chance.randrange(100)
        if kind < 25:
            return b"%b" % bytes(chance.choices(b"abcXYZ 0189~#_-/", k=chance.choice((1, 3, 10, 50, 200))))
        if kind < 35:
            return chance.choice(_WIDE).encode() * chance.choice((1, 1, 2, 5, 40))
        if kind < 45:
            return chance.choice((b"\r", b"\n", b"\r\n", b"\t", b"\b", b"\x1bD", b"\x1bE", b"\x1bM", b"\x1b7", b"\x1b8", b"\x0e", b"\x0f", b"\x84", b"\x0c", b"\x1bH", b"\x1b#8", b"\x1b(0", b"\x1b(B", b"\x1bN", b"\x1bO", b"\x1bn", b"\x1b=", b"\x1b>"))  # fmt: skip
        if kind < 67:
            return self._csi()
        if kind < 75:
            return b"\x1b[?%d%c" % (chance.choice(_MODES), chance.choice(b"hhhlsr"))
        if kind < 80:
            return self._style()
        if kind < 87:
            return self._link()
        if kind < 93:
            return self._string()
        if kind < 96:
            return b"\x1b[%d;%d%c" % (chance.choice(self.counts), chance.choice(self.counts), chance.choice(b"rs"))
        if kind < 98:
            return chance.choice(
                (b"\x1bc", b"\x1b[!p", b"\x1b[3J", b"\x1b[2J", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?69h")
            )
        return chance.randbytes(chance.randint(1, 6))

    def _csi(self) -> bytes:
        chance = self.chance
        numbers = ";".join(str(chance.choice(self.counts)) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, 5))))
        prefix = chance.choice(("", "", "", "", "", "", "?", ">", "=", "<"))
        between = chance.choice(("", "", "", "", "", "", " ", "$", '"', "'", "*", "!"))
        return f"\x1b[{prefix}{numbers}{between}{chr(chance.choice(_FINALS))}".encode()

    def _style(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.5:
            return b"\x1b[%d;%dm" % (chance.randrange(110), chance.randrange(110))
        return b"\x1b[%d;2;%d;%d;%dm" % (chance.choice((38, 48, 58)), *chance.randbytes(3))

    def _link(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.25:
            return b"\x1b]8;;\x1b\\"
        name = b"id=%d" % chance.randrange(9) if chance.random() < 0.5 else b""
        address = b"http://%d/%b" % (chance.randrange(10**6), b"y" * chance.choice((0, 5, 50, 500, 3000)))
        return b"\x1b]8;%b;%b%b" % (name, address, chance.choice((b"\x07", b"\x1b\\")))

    def _string(self) -> bytes:
        chance = self.chance
        opening = chance.choice((b"\x1b]%d;" % chance.choice((0, 1, 2, 4, 5, 7, 9, 10, 11, 12, 21, 22, 52, 66, 99, 104, 133, 777, 1337)), b"\x1bP", b"\x1bP+q", b"\x1bP$q", b"\x1b_G", b"\x1b_", b"\x1b^", b"\x1bX"))  # fmt: skip
        inside = chance.choice((b"A", b"B", b"C;0", b"D;1", b"?", b"m", b"c;QUJD", b"a=T,f=24,s=1,v=1;AAAA", b"544e", b"rgb:ff/00/00", b"file:///tmp", b"4;1;x", b"s=2;big"))  # fmt: skip
        return (
            opening + inside * chance.choice((1, 1, 1, 3)) + chance.choice((b"\x07", b"\x1b\\", b"\x9c", b"\x18", b""))
        )
