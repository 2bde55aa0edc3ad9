"""What a literal or a regular expression demands of a text, read off it before anything is searched.

Three answers, each allowed to be too generous and never too strict: an FTS5 expression over trigrams that a matching
file must fit (None: every file may match); pieces of text that stand in every match (anchors), which can be
looked for at memory speed; and whether a match may cross the end of a line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wsh.workspace.error import InvalidArguments
from wsh.workspace.search.word import grams

MAX_PATTERN = 2000
_MAX_GRAMS = 24
_NEWLINE = 10
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CROSSING_CATEGORIES = ("CATEGORY_SPACE", "CATEGORY_NOT_DIGIT", "CATEGORY_NOT_WORD")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The compiled expression, lines apart (`^` and `$` match at lines). Raises InvalidArguments with its position."""
    if len(pattern) > MAX_PATTERN:
        raise InvalidArguments(
            f"The regular expression is longer than {MAX_PATTERN} characters.", hint="Make it shorter."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern, re.MULTILINE)
    except re.error as problem:
        at = problem.pos
        where = "" if at is None else f" at position {at}"
        raise InvalidArguments(
            f"The regular expression cannot be read: {problem.msg}{where}.",
            hint="Correct it (Python's re syntax), or use match: literal for plain text.",
            **({} if at is None else {"position": at}),
        ) from None
    except (RecursionError, OverflowError):
        raise InvalidArguments("The regular expression is nested too deeply.", hint="Make it simpler.") from None


def literal_to_fts(literal: str) -> str | None:
    return _join(grams(literal.encode("utf-8", "replace")))


def _join(pieces: Iterable[str]) -> str | None:
    chosen = list(pieces)
    if len(chosen) > _MAX_GRAMS:  # evenly spread ones say nearly as much
        step = len(chosen) / _MAX_GRAMS
        chosen = [chosen[int(n * step)] for n in range(_MAX_GRAMS)]
    if not chosen:
        return None
    return " AND ".join('"' + piece.replace('"', '""') + '"' for piece in chosen)


@dataclass(frozen=True)
class Demand:
    fts: str | None = None
    anchors: tuple[str, ...] = ()  # the rarest first, by guess
    prefix: str = ""  # every match begins with exactly this
    crosses_lines: bool = True


def study(pattern: re.Pattern[str]) -> Demand:
    """What `pattern` demands; nothing when its structure cannot be read."""
    try:
        from re import _parser  # type: ignore[attr-defined]  # the parser of the standard library, undocumented

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        anchors = [] if pattern.flags & re.IGNORECASE else _anchors(tree)
        return Demand(
            fts=_need_to_fts(_needs(tree)),
            anchors=tuple(sorted({a for a in anchors if len(a) > 1}, key=_rarity, reverse=True)),
            prefix="" if pattern.flags & re.IGNORECASE else _prefix(tree),
            crosses_lines=_crosses(tree, bool(pattern.flags & re.DOTALL)),
        )
    except (ImportError, AttributeError, TypeError, ValueError, IndexError, RecursionError):
        return Demand()


# trigrams


@dataclass(frozen=True)
class _Need:
    """Text that must occur (`literal`, without regard to case), or all or any of other needs."""

    literal: str = ""
    every: tuple[_Need, ...] = ()
    either: tuple[_Need, ...] = ()


def _needs(tree: Any) -> _Need:
    parts: list[_Need] = []
    run: list[str] = []

    def flush() -> None:
        if run:
            parts.append(_Need(literal="".join(run)))
            run.clear()

    for op, argument in tree:
        name = str(op)
        if name == "LITERAL":
            run.append(chr(argument))
            continue
        single = _one_letter(argument) if name == "IN" else None
        if single is not None:
            run.append(single)
            continue
        if name == "SUBPATTERN" and all(str(inner[0]) == "LITERAL" for inner in argument[3]):
            run.extend(chr(inner[1]) for inner in argument[3])
            continue
        flush()
        if name == "SUBPATTERN":
            parts.append(_needs(argument[3]))
        elif name == "ATOMIC_GROUP":
            parts.append(_needs(argument))
        elif name in _REPEATS and argument[0] >= 1:
            parts.append(_needs(argument[2]))
        elif name == "BRANCH":
            parts.append(_Need(either=tuple(_needs(branch) for branch in argument[1])))
    flush()
    return _Need(every=tuple(parts))


def _one_letter(members: Any) -> str | None:
    """`[Ff]` is the letter f to an index without case."""
    letters = set()
    for op, value in members:
        if str(op) != "LITERAL":
            return None
        letters.add(chr(value).lower())
    return letters.pop() if len(letters) == 1 else None


def _need_to_fts(need: _Need) -> str | None:
    if need.literal:
        return literal_to_fts(need.literal)
    if need.either:
        branches = [_need_to_fts(branch) for branch in need.either]
        if any(branch is None for branch in branches):
            return None
        return "(" + " OR ".join(f"({branch})" for branch in branches) + ")"
    found = [fts for part in need.every if (fts := _need_to_fts(part)) is not None]
    return " AND ".join(f"({fts})" for fts in found) or None


# anchors and lines


def _anchors(tree: Any) -> list[str]:
    """Pieces of text that stand in every match exactly so."""
    found: list[str] = []
    run: list[str] = []
    for op, argument in [*tree, (None, None)]:
        name = str(op)
        if name == "LITERAL" and argument != _NEWLINE:
            run.append(chr(argument))
            continue
        if run:
            found.append("".join(run))
            run = []
        if name == "SUBPATTERN" and not argument[1] & re.IGNORECASE:
            found += _anchors(argument[3])
        elif name in _REPEATS and argument[0] >= 1:
            found += _anchors(argument[2])
        elif name == "ATOMIC_GROUP":
            found += _anchors(argument)
    return found


def _prefix(tree: Any) -> str:
    found: list[str] = []
    for op, argument in tree:
        if str(op) != "LITERAL":
            break
        found.append(chr(argument))
    return "".join(found)


def _rarity(text: str) -> float:
    return sum(1.0 if c.islower() else 0.4 if c == " " else 2.0 for c in text)


def _crosses(tree: Any, dotall: bool) -> bool:
    """Whether a match, or what it looks at, may reach beyond one line."""
    for op, argument in tree:
        name = str(op)
        if name == "LITERAL":
            crossing = argument == _NEWLINE
        elif name == "NOT_LITERAL":
            crossing = argument != _NEWLINE
        elif name == "ANY":
            crossing = dotall
        elif name == "IN":
            crossing = _class_crosses(argument)
        elif name == "AT":
            crossing = str(argument) in ("AT_END_STRING", "AT_BEGINNING_STRING")
        elif name == "SUBPATTERN":
            crossing = _crosses(argument[3], dotall or bool(argument[1] & re.DOTALL))
        elif name == "ATOMIC_GROUP":
            crossing = _crosses(argument, dotall)
        elif name in _REPEATS:
            crossing = _crosses(argument[2], dotall)
        elif name == "BRANCH":
            crossing = any(_crosses(branch, dotall) for branch in argument[1])
        elif name in ("ASSERT", "ASSERT_NOT"):
            crossing = _crosses(argument[1], dotall)
        elif name == "GROUPREF":
            crossing = False
        else:
            crossing = True
        if crossing:
            return True
    return False


def _class_crosses(members: Any) -> bool:
    negated = bool(members) and str(members[0][0]) == "NEGATE"
    holds = False
    for op, value in members:
        name = str(op)
        if name == "LITERAL":
            holds = holds or value == _NEWLINE
        elif name == "RANGE":
            holds = holds or value[0] <= _NEWLINE <= value[1]
        elif name == "CATEGORY":
            holds = holds or str(value) in _CROSSING_CATEGORIES
    return holds != negated
