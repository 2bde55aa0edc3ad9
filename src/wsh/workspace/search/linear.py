"""A regular expression for a matcher whose time grows with the text alone, where that matcher finds the same.

Python's matcher tries place after place and may need exponential time; RE2 reads a text once. `linearize` says a pattern
again in RE2's words. It answers None for what RE2 does not have (looking around, references back) and for what it does
differently: repeats of something empty, and matches that may be empty. What it says holds for texts of ASCII alone,
where a character is a byte. For other texts the pattern is said a second time and more widely: every match of Python's
is one there too, so what does not match widely need not be looked at again.
"""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
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
_BOUNDARIES = ("AT_BOUNDARY", "AT_NON_BOUNDARY")
_FOREIGN = r"\x80-\xff"
_REST = r"[\x80-\xff]?" * 3  # of a character whose first byte was matched
_ANYWHERE = re2._Anchor.UNANCHORED

Span = tuple[int, int]


def _options(case_sensitive: bool = True) -> re2.Options:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = case_sensitive
    return options


_FOREIGN_LINES = re2.compile(rb"(?:[^\n]*[\x80-\xff][^\n]*\n?)+", _options())


def foreign_lines(data: bytes) -> list[Span]:
    """Lines that have something other than ASCII in them; those that follow each other are one span."""
    return [lines.span() for lines in _FOREIGN_LINES.finditer(data)]


class Linear:
    """A pattern in RE2's words. `exact`: it holds for UTF-8 of any kind, not for ASCII alone."""

    def __init__(self, said: str, said_widely: str | None, case_sensitive: bool) -> None:
        # The matcher below the module's own: an object for every match would take as long as finding it.
        self._match = re2.compile(said.encode("ascii"), _options(case_sensitive))._regexp.Match
        self.exact = said == said_widely
        self._match_widely: Any = None
        if said_widely is not None and not self.exact:
            with suppress(re2.error):  # it is the longer of the two, and may be too long
                self._match_widely = re2.compile(said_widely.encode("ascii"), _options())._regexp.Match

    def collect(self, data: bytes, start: int, end: int, spans: list[Span], most: int) -> int:
        """How many matches there are from `start` to `end`; the first go to `spans`, until it has `most`."""
        match = self._match
        count = 0
        while True:
            span = match(_ANYWHERE, data, start, end)[0]
            if span[0] < 0:
                return count
            count += 1
            if len(spans) < most:
                spans.append(span)
            start = span[1]

    def may_match(self, data: bytes, start: int, end: int) -> bool:
        """False where Python's matcher finds nothing in the UTF-8 from `start` to `end`."""
        return self._match_widely is None or self._match_widely(_ANYWHERE, data, start, end)[0][0] >= 0


class _Different(Exception):
    """RE2 would find something else, or does not know this."""


def linearize(pattern: re.Pattern[str]) -> Linear | None:
    """The pattern for RE2, or None where that finds something else."""
    try:
        from re import _parser  # type: ignore[attr-defined]  # the parser of the standard library, undocumented

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        if tree.getwidth()[0] == 0:
            return None
        dotall, any_case = bool(pattern.flags & re.DOTALL), bool(pattern.flags & re.IGNORECASE)
        said = _Speaker(dotall, any_case, wide=False).say(tree)
        # Without regard to case a letter of ASCII may stand for one that is not, such as the sign of Kelvin.
        said_widely = None if any_case else _Speaker(dotall, any_case, wide=True).say(tree)
        return Linear(said, said_widely, not any_case)
    except (_Different, re2.error, ImportError, AttributeError, TypeError, ValueError, RecursionError):
        return None


class _Speaker:
    """Says a pattern in RE2's words; `wide` for UTF-8, where anything that is not ASCII may be what is looked for."""

    def __init__(self, dotall: bool, any_case: bool, wide: bool) -> None:
        self._any_case = any_case
        self._any = r"[\x00-\x7f]" if dotall and not wide else r"[\x00-\xff]" if dotall else r"[^\n]"
        self._wide = wide

    def say(self, tree: Any) -> str:
        return "".join(self._say_one(str(op), argument) for op, argument in tree)

    def _say_one(self, name: str, argument: Any) -> str:
        if name == "LITERAL":
            return _byte(argument)
        if name == "NOT_LITERAL":
            return self._character(f"[^{_byte(argument)}]")
        if name == "ANY":
            return self._character(self._any)
        if name == "IN":
            return self._class(argument)
        if name == "AT" and str(argument) in _PLACES:
            return "" if self._wide and str(argument) in _BOUNDARIES else _PLACES[str(argument)]
        if name == "BRANCH":
            return f"(?:{'|'.join(self.say(branch) for branch in argument[1])})"
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            return f"(?:{self.say(argument[3])})"
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = argument
            if inner.getwidth()[0] == 0:
                raise _Different
            lazy = "?" if name == "MIN_REPEAT" else ""
            return f"(?:{self.say(inner)}){{{least},{'' if str(most) == 'MAXREPEAT' else most}}}{lazy}"
        raise _Different

    def _character(self, said: str) -> str:
        """One character, where `said` is its first byte and may be of one that is not ASCII."""
        return f"(?:{said}{_REST})" if self._wide else said

    def _class(self, members: Any) -> str:
        parts: list[str] = []
        negated = ""
        foreign = False
        for op, value in members:
            name = str(op)
            if name == "NEGATE":
                negated = "^"
            elif name == "LITERAL":
                parts.append(_byte(value))
            elif name == "RANGE":
                low, high = value
                if high > _ASCII and self._any_case:
                    raise _Different  # the long s in it also stands for the s of ASCII
                foreign = foreign or high > _ASCII
                parts.append(f"{_byte(low)}-{_byte(min(high, _ASCII))}")
            elif name == "CATEGORY":
                foreign = True
                parts.append(_CATEGORIES[str(value)])
            else:
                raise _Different
        if negated:
            return self._character(f"[^{''.join(parts)}]")
        if foreign and self._wide:
            return self._character(f"[{''.join(parts)}{_FOREIGN}]")
        return f"[{''.join(parts)}]"


def _byte(code: int) -> str:
    if code > _ASCII:
        raise _Different
    return f"\\x{code:02x}"
