"""Text to print: plain, coloured, cursor-addressed and wide, always the same."""

from __future__ import annotations

import random
from pathlib import Path

KINDS = ("plain", "coloured", "cursor", "wide")


def write_corpus(folder: Path, size_bytes: int) -> dict[str, Path]:
    """One file of about `size_bytes` for each kind."""
    makers = {"plain": _plain, "coloured": _coloured, "cursor": _cursor, "wide": _wide}
    paths: dict[str, Path] = {}
    for kind, make in makers.items():
        block = make(random.Random(kind))
        path = folder / f"{kind}.txt"
        path.write_bytes(block * max(1, size_bytes // len(block)))
        paths[kind] = path
    return paths


def _words(chance: random.Random) -> str:
    return "".join(chance.choice("abcdefghijklmnopqrstuvwxyz    ") for _ in range(chance.randint(20, 78)))


def _plain(chance: random.Random) -> bytes:
    return "".join(f"{_words(chance)}\n" for _ in range(4000)).encode()


def _coloured(chance: random.Random) -> bytes:
    lines = []
    for _ in range(2000):
        parts = [
            f"\x1b[{chance.choice(('0', '1', '3', '4'))};38;5;{chance.randrange(256)}m{word}"
            for word in _words(chance).split(" ")
        ]
        lines.append(" ".join(parts) + "\x1b[0m\n")
    return "".join(lines).encode()


def _cursor(chance: random.Random) -> bytes:
    cells = [
        f"\x1b[{chance.randint(1, 24)};{chance.randint(1, 70)}H{chance.choice('abcdefghij') * chance.randint(1, 8)}"
        for _ in range(20_000)
    ]
    return "".join(cells).encode()


def _wide(chance: random.Random) -> bytes:
    def character() -> str:
        return chance.choice((chr(chance.randint(0x4E00, 0x9FA5)), chr(chance.randint(0x3041, 0x3096)), "é", "x", "🙂"))

    return "".join("".join(character() for _ in range(38)) + "\n" for _ in range(2000)).encode()
