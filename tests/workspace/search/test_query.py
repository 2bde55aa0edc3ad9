"""The query language: what is understood, and where it says that it is not."""

from __future__ import annotations

import re
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsh.workspace.error import InvalidArguments
from wsh.workspace.search.pattern import compile_pattern, literal_to_fts, study
from wsh.workspace.search.query import describe, parse_query, to_fts
from wsh.workspace.search.scan import LiteralMatcher, Needle, PatternMatcher, SearchedText
from wsh.workspace.search.word import gram_text, hump_words, split_humps


@pytest.mark.parametrize(
    ("query", "position", "problem"),
    [
        ('say "hello', 4, "quote"),
        ("(a b", 0, "bracket"),
        ("a (b (c)", 2, "bracket"),
        ("a b)", 3, "bracket"),
        ("a OR", 4, "missing"),
        ("OR a", 0, "missing"),
        ("a OR OR b", 5, "missing"),
        ("()", 1, "missing"),
        ("NOT a", 0, "left out"),
        ("-a -b", 0, "left out"),
        ("a OR -b", 5, "left out"),
        ("a NOT", 2, "nothing after"),
        ("NOT NOT a", 4, "NOT follows"),
        ("a AND", 2, "nothing after"),
        ("AND a", 0, "nothing before"),
        ("a ->", 2, "letter or digit"),
        ("(" * 60 + "a" + ")" * 60, 33, "deeply"),
        (" ".join(["w"] * 80), 128, "64"),
    ],
)
def test_a_query_that_cannot_be_read_says_where(query: str, position: int, problem: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        parse_query(query)
    assert caught.value.details["position"] == position
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("a b", {"and": [{"word": "a"}, {"word": "b"}]}),
        ("a AND b", {"and": [{"word": "a"}, {"word": "b"}]}),
        ("a OR b c", {"or": [{"word": "a"}, {"and": [{"word": "b"}, {"word": "c"}]}]}),
        ("(a OR b) c", {"and": [{"or": [{"word": "a"}, {"word": "b"}]}, {"word": "c"}]}),
        ("a -b", {"and": [{"word": "a"}], "not": [{"word": "b"}]}),
        ("a NOT (b OR c)", {"and": [{"word": "a"}], "not": [{"or": [{"word": "b"}, {"word": "c"}]}]}),
        ('"a b" c*', {"and": [{"phrase": "a b"}, {"prefix": "c"}]}),
        ("--no-cache x-y", {"and": [{"word": "--no-cache"}, {"word": "x-y"}]}),
        ("or and not", {"and": [{"word": "or"}, {"word": "and"}, {"word": "not"}]}),
    ],
)
def test_a_query_is_read_as_people_mean_it(query: str, tree: object) -> None:
    assert describe(parse_query(query)) == tree


def words_table(*documents: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(name, scope, body, humps)")
    for document in documents:
        row = ("", "", document, hump_words(document.encode("utf-8", "surrogatepass")))
        connection.execute("INSERT INTO words VALUES (?,?,?,?)", row)
    return connection


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_no_text_a_caller_writes_is_read_as_syntax_of_the_database(text: str) -> None:
    table = words_table("some text")
    try:
        expression = to_fts(parse_query(text))
    except InvalidArguments:
        return
    table.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression.encode("utf-8", "replace").decode(),))
    table.close()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("parse_args", "parseArgs()"),
        ("parseArgs", "def parse_args"),
        ("HTTPServerError", "http server error"),
        ("server", "HTTPServerError"),
        ("utf8", "utf8"),
        ("max_len2", "max_len2"),
        ("straße", "Straße"),
        ("cafe", "café"),
    ],
)
def test_names_are_found_by_their_parts(query: str, text: str) -> None:
    table = words_table(text)
    assert table.execute("SELECT count(*) FROM words WHERE words MATCH ?", (to_fts(parse_query(query)),)).fetchone()[0]
    table.close()


def test_humps_are_split_where_people_see_them() -> None:
    assert split_humps("HTTPServerError") == ["HTTP", "Server", "Error"]
    assert split_humps("parseXML2Json") == ["parse", "XML", "2", "Json"]
    assert split_humps("plain") == ["plain"]


# trigrams and anchors let every match through


def grams_let_through(expression: str | None, text: str) -> bool:
    if expression is None:
        return True
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE grams USING fts5(pieces, content='', tokenize='trigram', detail=none)")
    connection.execute("INSERT INTO grams(rowid, pieces) VALUES (1, ?)", (gram_text(text.encode()),))
    found: int = connection.execute("SELECT count(*) FROM grams WHERE grams MATCH ?", (expression,)).fetchone()[0]
    connection.close()
    return found == 1


def read_once(pattern: str) -> PatternMatcher:
    needle = PatternMatcher(pattern)
    needle.read_once()
    return needle


def whole(needle: Needle, text: str, tuned: bytes | None = None) -> tuple[int, list[tuple[int, int]]]:
    if tuned is not None:
        needle.tune(tuned, len(tuned))
    return needle.find(SearchedText(text.encode()))


MAKERS = (PatternMatcher, read_once)
TEXTS = st.text(alphabet="abcABC _.()\n\t'é€٣𝒜\u00a0", min_size=0, max_size=30)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS.filter(bool), TEXTS)
def test_trigrams_never_hide_a_literal(before: str, literal: str, after: str) -> None:
    text = before + literal + after
    assert grams_let_through(literal_to_fts(literal), text)
    assert whole(LiteralMatcher(literal), text)[0] >= 1


PATTERNS = [
    r"class \w+Error\(",
    r"(foo|bar)baz",
    r"(?i)HeLLo",
    r"[Ff]oobar",
    r"(abc){2,}def",
    r"abc?def",
    r"a(?:bcd)*efg",
    r"colou?r: (red|green)",
    r"^import (\w+)$",
    r"x{3}yyy",
    r"(?=look)lookahead",
    r"(?<=pre)fixed",
    r"foo\s+bar",
    r"foo[^x]bar",
    r"foo.bar",
    r"(?s)foo.bar",
    r"\bwhole\b",
    r"über\w+",
    r"(?P<q>['\"])text(?P=q)",
    r"one\ntwo",
    r"\Aone",
    r"fix(?:es|ed)\Z",
    r"(?m:^)foo",
    r"(?<!pre)fixed$",
    r"\b\w{5,}\b",
    r"[a-z]+\s[^\W\d]+",
    r"(?i)[A-C]+[^a]?",
    r"(?:o|oo|e)+?[rb]?",
    r"\S+$",
    r"(?:a*b?)*c",
    r"\d{2,}",
    r"\w{3}\b",
    r".{4}$",
    r"[^a]{2}\sy",
    r"(?i)ks",
    r"\b[a-z]+\.[a-z]+\b",
    r"[a-z]+\.[a-z]+",
    r"\Bx",
    r"(?s)[a-z].[a-z]",
]
SAMPLES = [
    "class MyError(Exception):\nclass Other(",
    "foobaz barbaz\nfoo baz",
    "say hello HELLO\nhel lo",
    "Foobar foobar FOOBAR",
    "abcabcdef abcdef abdef",
    "aefg abcdbcdefg",
    "colour: red\ncolor: green",
    "import os\n  import sys\nimport re",
    "xxxyyy xxyyy",
    "lookahead look ahead",
    "prefixed fixed",
    "foo\nbar foo  bar fooxbar foo bar",
    "a whole thing wholesome",
    "überfall übers ueber",
    "'text' \"text\" 'text\"",
    "one\ntwo one two",
    "٣٤٥ 12\n12\n\u00a0x\u2003y\n𝒜𝒜𝒜 abc",
    "\u212a\u017f ks KS\na.bé é.b a.b\né\na.b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("text", SAMPLES)
def test_a_pattern_finds_what_python_finds(pattern: str, text: str) -> None:
    compiled = compile_pattern(pattern)
    expected = [m.span() for m in compiled.finditer(text) if m.group()]
    prefixes = (study(compiled).prefix * 9).encode()  # a sample in which the first text of the pattern is common
    for sample, make in [(sample, make) for sample in (None, b"", text.encode(), prefixes) for make in MAKERS]:
        count, spans = whole(make(pattern), text, sample)
        assert count == len(expected)
        assert [text.encode()[s:e].decode() for s, e in spans] == [text[s:e] for s, e in expected]
    if expected:
        demand = study(compiled)
        assert grams_let_through(demand.fts, text)
        assert all(anchor in text for anchor in demand.anchors)


PIECES = st.sampled_from(
    ["a", "B", "é", "[ab]", "[^a]", r"\w", r"\W", r"\s", r"\S", r"\d", ".", "^", "$", r"\b", r"\B", "_", r"\(", "[a-cA]", r"[^\s_]", "(?=a)", "\n"]
)  # fmt: skip
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "+?", "*?", "{2}", "{1,3}"])


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        if depth and draw(st.booleans()):
            inner = "|".join(draw(st.lists(patterns(depth - 1), min_size=1, max_size=2)))
            parts.append(f"({inner})" + draw(REPEATS))
        else:
            piece = draw(PIECES)
            parts.append(piece + ("" if piece in "^$" or piece.startswith(("\\b", "\\B", "(?")) else draw(REPEATS)))
    return "".join(parts)


@settings(max_examples=2000, deadline=None)
@given(patterns(), TEXTS)
def test_any_pattern_finds_what_python_finds(pattern: str, text: str) -> None:
    if ")*" in pattern or ")+" in pattern:
        text = text[:8]  # Python's matcher may need time that doubles with every character
    expected = [m.span() for m in compile_pattern(pattern).finditer(text) if m.group()]
    for make in MAKERS:
        count, spans = whole(make(pattern), text)
        assert count == len(expected)
        assert [text.encode()[s:e].decode() for s, e in spans] == [text[s:e] for s, e in expected]


def test_a_pattern_that_does_not_compile_says_where() -> None:
    with pytest.raises(InvalidArguments) as caught:
        compile_pattern("abc[def")
    assert caught.value.details["position"] == 3
    assert re.search("position 3", caught.value.message)
    with pytest.raises(InvalidArguments):
        compile_pattern("a" * 3000)
