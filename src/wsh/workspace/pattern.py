"""Which trigrams a text must hold so that a literal or a regular expression can match it at all.

The answer is an FTS5 expression for the trigram table, or None when nothing can be said and every file must be looked
at. It may let files through that do not match; it never keeps one out that does.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wsh.workspace.error import InvalidArguments
from wsh.workspace.word import grams

MAX_PATTERN = 2000
_MAX_GRAMS = 24


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
class _Need:
    """Text that must occur (`literal`), or all or any of other needs."""

    literal: str = ""
    every: tuple[_Need, ...] = ()
    either: tuple[_Need, ...] = ()


def regex_to_fts(pattern: re.Pattern[str]) -> str | None:
    try:
        from re import _parser  # type: ignore[attr-defined]  # the parser of the standard library, undocumented

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        need = _needs(tree)
    except (ImportError, AttributeError, TypeError, ValueError, RecursionError):
        return None
    return _need_to_fts(need)


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
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and argument[0] >= 1:
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
