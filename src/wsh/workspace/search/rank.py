"""Which hit comes first.

BM25 (by FTS5, names and paths weighted) says how much the words matter; definitions, names that are what was asked
for, and recent files are raised; tests, vendored and generated places are lowered. Every factor is shown by `explain`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache

from wsh.workspace.search.query import Term
from wsh.workspace.search.word import split_humps

BM25 = "bm25(10.0, 2.5, 1.0, 0.7)"

_KIND = {
    "class": 1.3,
    "interface": 1.3,
    "struct": 1.3,
    "trait": 1.3,
    "enum": 1.25,
    "function": 1.25,
    "method": 1.2,
    "type": 1.2,
    "macro": 1.2,
    "heading": 1.2,
    "constant": 1.15,
    "variable": 1.05,
    "command": 1.0,
    "block": 0.85,
    "key": 0.9,
}
_LOW_PLACES = re.compile(
    r"(^|/)(tests?|testing|__tests__|spec|fixtures?|examples?|_?vendor(ed)?|third_party|node_modules|dist|build|"
    r"locales?|migrations|generated)(/|$)|(^|/)(test_[^/]*|[^/]*_test\.[a-z]+|[^/]*\.(test|spec)\.[a-z]+|conftest\.py)$"
)
_STUBS = re.compile(r"\.(pyi|d\.ts)$|\.min\.")
_HALF_LIFE_DAYS = 30.0


@dataclass
class Score:
    base: float
    factors: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return self.base * math.prod(self.factors.values())

    def explain(self) -> dict[str, float]:
        return {"base": round(self.base, 4)} | {k: round(v, 3) for k, v in self.factors.items() if v != 1.0}


def name_parts(name: str) -> frozenset[str]:
    return frozenset(part.lower() for word in re.findall(r"[A-Za-z0-9]+", name) for part in split_humps(word))


def asked_parts(terms: list[Term]) -> frozenset[str]:
    return frozenset(
        part.lower() for term in terms for word in re.findall(r"[A-Za-z0-9]+", term.text) for part in split_humps(word)
    )


def name_factor(name: str, asked: frozenset[str]) -> float:
    """Name boost: 1.0 for no match, 3.5 for an exact one."""
    if not name or not asked:
        return 1.0
    parts = name_parts(name)
    common = len(parts & asked)
    if not common:
        return 1.0
    overlap = common / len(parts | asked)
    return 1.0 + 1.5 * overlap + (1.0 if overlap == 1.0 else 0.0)


@lru_cache(maxsize=20_000)
def place_factor(path: str) -> float:
    factor = 0.75 if _LOW_PLACES.search(path) else 1.0
    return factor * 0.8 if _STUBS.search(path) else factor


def recency_factor(age_s: float) -> float:
    return 1.0 + 0.2 * math.exp(-max(0.0, age_s) / 86_400 / _HALF_LIFE_DAYS)


def kind_factor(kind: str) -> float:
    return _KIND.get(kind, 1.0)


def nearness_factor(lines: list[tuple[int, int]], wanted: int) -> float:
    """Up to 1.4 when all words stand on one line. `lines` are (line, term) of the matches."""
    if wanted < 2 or not lines:
        return 1.0
    by_line: dict[int, set[int]] = {}
    for line, term in lines:
        by_line.setdefault(line, set()).add(term)
    most = max(len(terms) for terms in by_line.values())
    return 1.0 + 0.4 * (most - 1) / (wanted - 1)


def score_words(bm25: float, kind: str, name: str, path: str, age_s: float, asked: frozenset[str]) -> Score:
    return Score(
        1.0 - bm25,
        {
            "kind": kind_factor(kind),
            "name": name_factor(name, asked),
            "place": place_factor(path),
            "recency": recency_factor(age_s),
        },
    )


def count_base(count: int) -> float:
    return 1.0 + 0.5 * math.log1p(count - 1)


def score_found(
    count: int, kind: str, name: str, path: str, age_s: float, asked: frozenset[str], whole: bool, defines: bool
) -> Score:
    """For literals and patterns: how often, as a whole word, and whether the definition itself was hit."""
    return Score(
        count_base(count),
        {
            "kind": kind_factor(kind),
            "name": name_factor(name, asked),
            "defines": 2.0 if defines else 1.0,
            "whole": 1.3 if whole else 1.0,
            "place": place_factor(path),
            "recency": recency_factor(age_s),
        },
    )
