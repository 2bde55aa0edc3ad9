"""Characters of a line and the columns that they take in a terminal."""

from __future__ import annotations

import unicodedata


def column_of(text: str, at: int) -> int:
    """The column of a character."""
    return len(text[:at]) if text.isascii() else sum(width_of(character) for character in text[:at])


def character_at(text: str, column: int) -> int:
    """The character at a column, or the last one before it ends."""
    if text.isascii():
        return max(0, min(column, len(text)))
    for at, character in enumerate(text):
        column -= width_of(character)
        if column < 0:
            return at
    return len(text)


def width_of(character: str) -> int:
    """How many columns a character takes."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
