"""The word that was probably meant by one that is not known. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def find_near(word: str, known: Iterable[str]) -> str | None:
    """The nearest of `known`, if one is near at all."""
    # One three times as long is not near whatever it holds, and comparing ten megabytes would hold the loop for a second.
    comparable = [other for other in known if len(word) < 3 * len(other)]
    near = difflib.get_close_matches(word, comparable, n=1) if comparable else []
    return near[0] if near else None
