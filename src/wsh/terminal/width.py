"""How many cells text takes, as the library counts."""

from __future__ import annotations

from functools import lru_cache

from wsh.terminal.engine.native import lib


@lru_cache(maxsize=4096)
def width_of(character: str) -> int:
    return int(lib.ghostty_unicode_codepoint_width(ord(character)))


def columns(text: str) -> int:
    """Cells that text takes, character by character: marks and joiners take none."""
    if text.isascii():
        return len(text)
    return sum(map(width_of, text))
