"""The query language of `match: words`: words, "phrases", AND (implied), OR, NOT or a leading -, brackets, prefix*.

`parse_query` turns text into a tree or says at which position it went wrong; `to_fts` writes the tree for FTS5. Every
word is quoted there, so nothing that a caller writes is ever read as FTS5's own syntax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wsh.workspace.error import InvalidArguments
from wsh.workspace.search.word import split_humps, words

MAX_TERMS = 64
_MAX_DEPTH = 32


@dataclass(frozen=True)
class Term:
    """A word or a phrase. `tokens` is how the index sees it, in lower case."""

    text: str
    tokens: tuple[str, ...]
    prefix: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class All:
    parts: tuple[Query, ...]
    without: tuple[Query, ...] = ()


@dataclass(frozen=True)
class Any_:
    parts: tuple[Query, ...]


Query = Term | All | Any_


def _refuse(problem: str, query: str, position: int, hint: str) -> InvalidArguments:
    return InvalidArguments(
        f"The query cannot be read: {problem} at position {position}.",
        hint=hint,
        position=position,
        query=query[:500],
    )


@dataclass(frozen=True)
class _Token:
    kind: str  # word, phrase, open, close, or, and, not
    text: str
    at: int


def _tokens(query: str) -> Iterator[_Token]:
    at = 0
    while at < len(query):
        char = query[at]
        if char.isspace():
            at += 1
        elif char == '"':
            end = query.find('"', at + 1)
            if end < 0:
                raise _refuse("a quote is not closed", query, at, 'Close it with ", or use match: literal.')
            yield _Token("phrase", query[at + 1 : end], at)
            at = end + 1
        elif char in "()":
            yield _Token("open" if char == "(" else "close", char, at)
            at += 1
        elif char == "-" and (query[at + 1 : at + 2].isalnum() or query[at + 1 : at + 2] in ('"', "(", "_")):
            yield _Token("not", char, at)
            at += 1
        else:
            end = at
            while end < len(query) and not query[end].isspace() and query[end] not in '"()':
                end += 1
            word = query[at:end]
            kind = {"OR": "or", "AND": "and", "NOT": "not"}.get(word, "word")
            yield _Token(kind, word, at)
            at = end


class _Parser:
    def __init__(self, query: str) -> None:
        self.query = query
        self.tokens = list(_tokens(query))
        self.at = 0
        self.terms = 0

    def peek(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def parse(self) -> Query:
        if not self.tokens:
            raise _refuse("it is empty", self.query, 0, "Give at least one word.")
        found = self.either(0)
        left = self.peek()
        if left is not None:
            raise _refuse("a bracket is closed that was not opened", self.query, left.at, "Remove it, or open one.")
        return found

    def either(self, depth: int) -> Query:
        if depth > _MAX_DEPTH:
            token = self.peek()
            raise _refuse("brackets are nested too deeply", self.query, token.at if token else 0, "Use fewer.")
        parts = [self.every(depth)]
        while (token := self.peek()) is not None and token.kind == "or":
            self.at += 1
            parts.append(self.every(depth))
        return parts[0] if len(parts) == 1 else Any_(tuple(parts))

    def every(self, depth: int) -> Query:
        start = self.peek()
        wanted: list[Query] = []
        without: list[Query] = []
        joined: _Token | None = None
        while (token := self.peek()) is not None and token.kind not in ("or", "close"):
            if token.kind == "and":
                if not (wanted or without) or joined is not None:
                    raise _refuse("AND has nothing before it", self.query, token.at, "Write it between two words.")
                joined = token
                self.at += 1
                continue
            joined = None
            if token.kind == "not":
                self.at += 1
                without.append(self.one(depth, token))
            else:
                wanted.append(self.one(depth, token))
        end = self.peek()
        if joined is not None:
            raise _refuse("AND has nothing after it", self.query, joined.at, "Write it between two words.")
        if not wanted and not without:
            at = end.at if end is not None else len(self.query)
            raise _refuse("a word is missing", self.query, at, "OR, NOT and brackets need words.")
        if not wanted:
            at = start.at if start is not None else 0
            raise _refuse("nothing is looked for, only left out", self.query, at, "Add a word that must be there.")
        return wanted[0] if len(wanted) == 1 and not without else All(tuple(wanted), tuple(without))

    def one(self, depth: int, before: _Token) -> Query:
        token = self.peek()
        if token is None or token.kind in ("or", "and", "close"):
            raise _refuse(f"{before.text} has nothing after it", self.query, before.at, "Add a word after it.")
        self.at += 1
        if token.kind == "not":
            raise _refuse("NOT follows NOT", self.query, token.at, "Leave one of them out.")
        if token.kind == "open":
            inner = self.either(depth + 1)
            closing = self.peek()
            if closing is None:
                raise _refuse("a bracket is not closed", self.query, token.at, "Close it with ).")
            self.at += 1
            return inner
        return self.term(token)

    def term(self, token: _Token) -> Term:
        self.terms += 1
        if self.terms > MAX_TERMS:
            raise _refuse(f"there are more than {MAX_TERMS} words", self.query, token.at, "Ask for less at once.")
        quoted = token.kind == "phrase"
        text = token.text
        prefix = not quoted and text.endswith("*")
        if prefix:
            text = text.rstrip("*")
        tokens = tuple(words(text))
        if not tokens:
            raise _refuse(
                f"{token.text!r} has no letter or digit",
                self.query,
                token.at,
                "Words are letters and digits; use match: literal for punctuation.",
            )
        return Term(text, tokens, prefix, quoted)


def parse_query(query: str) -> Query:
    """The tree of a query. Raises InvalidArguments with `position` (counted from 0) where it cannot be read."""
    return _Parser(query).parse()


def _phrase(tokens: tuple[str, ...] | list[str]) -> str:
    return '"' + " ".join(tokens) + '"'


def _term_to_fts(term: Term) -> str:
    variants = [_phrase(term.tokens)]
    if term.prefix:
        variants[0] += " *"
    elif not term.quoted:
        humps = [part.lower() for word in term.text.replace("_", " ").split() for part in split_humps(word)]
        if term.text.isascii() and term.text.replace("_", "").isalnum():
            if len(humps) > len(term.tokens):
                variants.append(_phrase(humps))
            if len(term.tokens) > 1:
                variants.append(_phrase(["".join(term.tokens)]))
    return variants[0] if len(variants) == 1 else "(" + " OR ".join(variants) + ")"


def to_fts(query: Query) -> str:
    """The query in FTS5's syntax."""
    if isinstance(query, Term):
        return _term_to_fts(query)
    if isinstance(query, Any_):
        return "(" + " OR ".join(to_fts(part) for part in query.parts) + ")"
    wanted = " AND ".join(to_fts(part) for part in query.parts)
    if not query.without:
        return f"({wanted})"
    return f"(({wanted}) NOT ({' OR '.join(to_fts(part) for part in query.without)}))"


def wanted_terms(query: Query) -> list[Term]:
    """The terms that a match may show, in order, each once; those that must not be there are left out."""
    if isinstance(query, Term):
        return [query]
    found: dict[Term, None] = {}
    for part in query.parts:
        for term in wanted_terms(part):
            found[term] = None
    return list(found)


def plain_terms(query: Query) -> list[Term] | None:
    """The terms of a query that is only words joined by AND; None for any other."""
    if isinstance(query, Term):
        return [query]
    if isinstance(query, All) and not query.without:
        terms = [part for part in query.parts if isinstance(part, Term)]
        return terms if len(terms) == len(query.parts) else None
    return None


def describe(query: Query) -> object:
    """The tree as JSON, for `explain`."""
    if isinstance(query, Term):
        kind = "prefix" if query.prefix else "phrase" if query.quoted else "word"
        return {kind: query.text}
    if isinstance(query, Any_):
        return {"or": [describe(part) for part in query.parts]}
    shown: dict[str, object] = {"and": [describe(part) for part in query.parts]}
    if query.without:
        shown["not"] = [describe(part) for part in query.without]
    return shown
