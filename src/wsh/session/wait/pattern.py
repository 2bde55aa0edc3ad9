"""Patterns that callers send us, matched in linear time whatever they wrote.

RE2 has no backtracking, so no expression can stall the loop; what it does not know (lookaround, back references) is refused
with its own words.
"""

from __future__ import annotations

from typing import Protocol

import re2

from wsh.wire.error import InvalidPattern

_LONGEST = 4096


class Pattern(Protocol):
    def search(self, text: str) -> str | None:
        """The first match in `text`."""


class _Regex:
    def __init__(self, expression: str) -> None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 8 << 20
        if len(expression) > _LONGEST:
            raise InvalidPattern(expression, f"it is longer than {_LONGEST} characters")
        try:
            self._compiled = re2.compile(f"(?m:{expression})", options)
        except re2.error as problem:
            said = problem.args[0] if problem.args else problem
            text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            raise InvalidPattern(expression, text) from None

    def search(self, text: str) -> str | None:
        hit = self._compiled.search(text)
        return None if hit is None else str(hit.group(0))


class _Literal:
    def __init__(self, text: str) -> None:
        self._text = text

    def search(self, text: str) -> str | None:
        return self._text if self._text in text else None


def compile_pattern(expression: str) -> Pattern:
    """A regular expression; `^` and `$` match at lines. Raises InvalidPattern."""
    return _Regex(expression)


def compile_literal(text: str) -> Pattern:
    return _Literal(text)
