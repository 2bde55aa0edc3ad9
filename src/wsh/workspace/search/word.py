"""How text becomes words: identifiers in camelCase and snake_case are also their parts.

FTS5's unicode61 tokeniser splits at everything that is no letter or digit, so `parse_args` is two words already.
What it cannot see are humps; `hump_words` finds identifiers that have them and gives their parts, which are indexed
in a column of their own. The functions are pure and deterministic: a contentless index forgets a document by being
told its words again, so a change here needs a new `store.FORMAT`.

Texts are UTF-8 bytes: a table look-up and a split run several times faster than a regular expression does.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CACHED_CHARS = 128
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_WORD = re.compile(r"[^\W_]+")
_CASES = bytes(
    97 if bytes([c]).islower() or bytes([c]).isdigit() else 65 if bytes([c]).isupper() else 32 for c in range(256)
)
_HUMPS = (b"aA", b"AAa")  # what a hump looks like after _CASES

_PIECES = bytes(c if c >= 128 or c == 95 or bytes([c]).isalnum() else 32 for c in range(256))


def split_humps(word: str) -> list[str]:
    """`HTTPServerError` → `["HTTP", "Server", "Error"]`; one part when there are no humps."""
    return _PART.findall(word) or [word]


def hump_words(text: bytes) -> str:
    """The parts of every humped identifier in `text`, each identifier once, in a stable order."""
    cases = text.translate(_CASES)
    found: set[bytes] = set()
    for hump in _HUMPS:
        at = cases.find(hump)
        while at >= 0:
            start = cases.rfind(b" ", 0, at) + 1
            end = cases.find(b" ", at)
            end = len(text) if end < 0 else end
            found.add(text[start:end])
            at = cases.find(hump, end)
    if not found:
        return ""
    return " ".join([part for word in sorted(found) for part in _PART.findall(word.decode("ascii"))])


def words(text: str) -> list[str]:
    """The words of `text` as the index sees them: letters and digits, lower case, without diacritics."""
    return [fold(word) for word in _WORD.findall(text)]


def fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    stripped = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    return stripped.lower()


def gram_text(text: bytes) -> str:
    """What the trigram index is fed: each name, number or word of `text` once.

    Any three characters in a row within such a piece are kept, all others are lost; `grams` asks only for those. This
    is a quarter of the text, and so a quarter of the work.
    """
    return b" ".join(dict.fromkeys(text.translate(_PIECES).split())).decode("utf-8", "replace")


def grams(literal: bytes) -> list[str]:
    """The trigrams that a text containing `literal` must have; none when every piece of it is shorter."""
    found: dict[str, None] = {}
    for raw in literal.translate(_PIECES).split():
        piece = raw.decode("utf-8", "replace")
        for at in range(len(piece) - 2):
            found[piece[at : at + 3]] = None
    return list(found)


def _name_parts(name: str) -> str:
    # Long ones are lines that somebody typed: they come once.
    return _short_name_parts(name) if len(name) <= _CACHED_CHARS else _split_name(name)


@lru_cache(maxsize=1024)
def _short_name_parts(name: str) -> str:
    return _split_name(name)


def _split_name(name: str) -> str:
    return hump_words(name.encode("utf-8", "surrogateescape"))


def word_row(path: str, name: str, scope: str, text: bytes) -> tuple[str, str, str]:
    """The columns `name`, `scope` and `humps` of a chunk in a words table; `body` is its text."""
    name_parts = _name_parts(name)
    return (
        f"{name} {name_parts}" if name_parts else name,
        " ".join([path, scope, _name_parts(path), _name_parts(scope)]),
        hump_words(text),
    )
