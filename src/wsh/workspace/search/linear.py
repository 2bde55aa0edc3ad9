"""A regular expression for a matcher whose time grows with the text alone, where that matcher finds the same.

Python's matcher tries place after place and may need exponential time; RE2 reads a text once. `linearize` says a pattern
again in RE2's words. It answers None for what RE2 does not have (looking around, references back) and for what it does
differently: repeats of something empty, and matches that may be empty. It holds for texts of ASCII alone, where a
character is a byte.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import re2

_MEMORY = 32 << 20
_ASCII = 0x7F
_SPACE = r"\x09-\x0d\x20"
_CATEGORIES = {
    "CATEGORY_DIGIT": "0-9",
    "CATEGORY_NOT_DIGIT": r"\x00-\x2f\x3a-\x7f",
    "CATEGORY_WORD": "0-9A-Z_a-z",
    "CATEGORY_NOT_WORD": r"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f",
    "CATEGORY_SPACE": _SPACE,
    "CATEGORY_NOT_SPACE": r"\x00-\x08\x0e-\x1f\x21-\x7f",
}
_PLACES = {"AT_BEGINNING": "(?m:^)", "AT_END": "(?m:$)", "AT_BOUNDARY": r"\b", "AT_NON_BOUNDARY": r"\B"}


def _options(case_sensitive: bool = True) -> re2.Options:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = case_sensitive
    return options


FOREIGN_LINES = re2.compile(rb"(?:[^\n]*[\x80-\xff][^\n]*\n?)+", _options())
"""Lines that follow each other and have something other than ASCII in each."""


class _Different(Exception):
    """RE2 would find something else, or does not know this."""


def linearize(pattern: re.Pattern[str]) -> Any | None:
    """RE2's own compiled pattern for bytes of ASCII, or None."""
    try:
        from re import _parser  # type: ignore[attr-defined]  # the parser of the standard library, undocumented

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        if tree.getwidth()[0] == 0:
            return None
        said = _say(tree, bool(pattern.flags & re.DOTALL))
        return re2.compile(said.encode("ascii"), _options(not pattern.flags & re.IGNORECASE))
    except (_Different, re2.error, ImportError, AttributeError, TypeError, ValueError, RecursionError):
        return None


def _say(tree: Any, dotall: bool) -> str:
    return "".join(_say_one(str(op), argument, dotall) for op, argument in tree)


def _say_one(name: str, argument: Any, dotall: bool) -> str:
    if name == "LITERAL":
        return _byte(argument)
    if name == "NOT_LITERAL":
        return f"[^{_byte(argument)}]"
    if name == "ANY":
        return r"[\x00-\x7f]" if dotall else r"[^\n]"
    if name == "IN":
        return _class(argument)
    if name == "AT" and str(argument) in _PLACES:
        return _PLACES[str(argument)]
    if name == "BRANCH":
        return f"(?:{'|'.join(_say(branch, dotall) for branch in argument[1])})"
    if name == "SUBPATTERN" and not argument[1] and not argument[2]:
        return f"(?:{_say(argument[3], dotall)})"
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, inner = argument
        if inner.getwidth()[0] == 0:
            raise _Different
        lazy = "?" if name == "MIN_REPEAT" else ""
        return f"(?:{_say(inner, dotall)}){{{least},{'' if str(most) == 'MAXREPEAT' else most}}}{lazy}"
    raise _Different


def _byte(code: int) -> str:
    if code > _ASCII:
        raise _Different
    return f"\\x{code:02x}"


def _class(members: Any) -> str:
    parts: list[str] = []
    negated = ""
    for op, value in members:
        name = str(op)
        if name == "NEGATE":
            negated = "^"
        elif name == "LITERAL":
            parts.append(_byte(value))
        elif name == "RANGE":
            low, high = value
            parts.append(f"{_byte(low)}-{_byte(min(high, _ASCII))}")
        elif name == "CATEGORY":
            parts.append(_CATEGORIES[str(value)])
        else:
            raise _Different
    return f"[{negated}{''.join(parts)}]"
