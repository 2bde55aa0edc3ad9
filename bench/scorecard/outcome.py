"""What came of one case of a suite in one terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.scorecard.engine import Row, text_of, trimmed


@dataclass(frozen=True)
class Outcome:
    """`passed` is None where the case asks nothing that this terminal could be asked."""

    passed: bool | None
    detail: str = ""
    """The first difference."""


PASSED = Outcome(True)


def compare_text(seen: Sequence[str], expected: Sequence[str], what: str = "row") -> Outcome:
    """Lines without their trailing blanks and without the empty ones at the end."""
    ours, theirs = _settled(seen), _settled(expected)
    for number in range(max(len(ours), len(theirs))):
        mine = ours[number] if number < len(ours) else ""
        wanted = theirs[number] if number < len(theirs) else ""
        if mine != wanted:
            return Outcome(False, f"{what} {number}: {_short(mine)} instead of {_short(wanted)}")
    return PASSED


def compare_rows(seen: Sequence[Row], expected: Sequence[Row], *, coloured_blanks: bool) -> Outcome:
    """Cells with their styles. Without `coloured_blanks`, those at the end of a line do not count."""
    told = compare_text([text_of(row) for row in seen], [text_of(row) for row in expected])
    if told.passed is False:
        return told
    for number, (mine, wanted) in enumerate(zip(seen, expected, strict=False)):
        ours = trimmed(_by_character(mine), coloured=not coloured_blanks)
        theirs = trimmed(_by_character(wanted), coloured=not coloured_blanks)
        if ours != theirs:
            column = next(
                (at for at, (left, right) in enumerate(zip(ours, theirs, strict=False)) if left != right),
                min(len(ours), len(theirs)),
            )
            left = ours[column] if column < len(ours) else ("nothing", "")
            right = theirs[column] if column < len(theirs) else ("nothing", "")
            return Outcome(False, f"row {number}, cell {column}: {left} instead of {right}")
    return PASSED


def _by_character(row: Row) -> Row:
    """With every mark by itself, where a terminal tells a cell as a whole."""
    return [(character, style) for text, style in row for character in text]


def _settled(lines: Sequence[str]) -> list[str]:
    found = [line.rstrip() for line in lines]
    while found and not found[-1]:
        found.pop()
    return found


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
