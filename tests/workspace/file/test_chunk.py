"""Texts are cut at definitions and headings, without a gap or an overlap, in every language we have a grammar for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsh.workspace.file.chunk import MAX_BYTES, MAX_LINES, cut
from wsh.workspace.file.language import GRAMMARS, has_grammar, language_of, source_of

SOURCES: dict[str, tuple[str, str]] = {
    "python": (
        "import os\nLIMIT = 5\n@decorated\nclass Tree:\n    '''Doc.'''\n    size = 1\n    def grow(self):\n        return 1\n"
        "    async def shrink(self): pass\nif True:\n    def inner(): pass\ndef main(): pass\n",
        "constant LIMIT, class Tree, method grow, method shrink, function inner, function main",
    ),
    "javascript": (
        "class Tree {\n  grow() { return 1 }\n}\nexport function plant(a) {}\nconst water = () => 1\nlet count = 2\n",
        "class Tree, method grow, function plant, function water, variable count",
    ),
    "typescript": (
        "export interface Shape { area(): number }\ntype Id = string\nenum Kind { A }\n"
        "abstract class Box<T> {\n  private x = 1\n  open(): void {}\n}\nnamespace N {\n  export const LIMIT = 1\n}\n",
        "interface Shape, type Id, enum Kind, class Box, method open, constant LIMIT",
    ),
    "tsx": ("export const App = () => <div/>\nfunction Page() { return <p/> }\n", "function App, function Page"),
    "go": (
        "package p\n\nconst Limit = 1\n\nvar count int\n\ntype Tree struct {\n\tsize int\n}\n\ntype Grower interface{ Grow() }\n"
        "\nfunc (t *Tree) Grow() int { return 1 }\n\nfunc main() {}\n",
        "constant Limit, variable count, struct Tree, interface Grower, method Grow, function main",
    ),
    "rust": (
        "const LIMIT: u8 = 1;\nstruct Tree { size: u8 }\nenum Kind { A }\ntrait Grow { fn grow(&self); }\n"
        "impl Grow for Tree {\n    fn grow(&self) {}\n}\nmod inner {\n    pub fn deep() {}\n}\nmacro_rules! mac { () => {} }\n"
        "fn main() {}\ntype Id = u8;\n",
        "constant LIMIT, struct Tree, enum Kind, trait Grow, impl Tree, method grow, module inner, function deep, "
        "macro mac, function main, type Id",
    ),
    "java": (
        "package a;\npublic class Tree {\n  int size;\n  Tree() {}\n  int grow() { return 1; }\n  enum Kind { A }\n}\n"
        "interface Grower { void grow(); }\nrecord Point(int x) {}\n",
        "class Tree, method Tree, method grow, enum Kind, interface Grower, class Point",
    ),
    "c": (
        "#include <a.h>\n#define LIMIT 5\n#define TWICE(x) (2*(x))\nstruct tree { int size; };\nenum kind { A };\n"
        "typedef struct { int x; } point;\nint grow(struct tree *t);\nstatic int shrink(int a)\n{\n  return a;\n}\n"
        "#ifdef X\nchar *name(void) { return 0; }\n#endif\nint global = 1;\n",
        "macro LIMIT, macro TWICE, struct tree, enum kind, type point, function grow, function shrink, function name, "
        "variable global",
    ),
    "cpp": (
        "namespace zoo {\nclass Tree : public Base {\n public:\n  int grow() { return 1; }\n};\ntemplate <class T>\n"
        "T twice(T a) { return a; }\n}\nint zoo::Tree::shrink() { return 0; }\n",
        "class Tree, method grow, function twice, function zoo::Tree::shrink",
    ),
    "csharp": (
        "namespace Zoo {\n  public class Tree {\n    public int Size { get; set; }\n    public void Grow() {}\n  }\n"
        "  interface IGrow { void Grow(); }\n  enum Kind { A }\n}\n",
        "class Tree, property Size, method Grow, interface IGrow, enum Kind",
    ),
    "ruby": (
        "module Zoo\n  LIMIT = 1\n  class Tree\n    def grow\n    end\n    def self.plant(x)\n    end\n  end\nend\n",
        "module Zoo, constant LIMIT, class Tree, method grow, method plant",
    ),
    "php": (
        "<?php\nconst LIMIT = 1;\nfunction plant() {}\nclass Tree {\n  function grow() {}\n}\ninterface Grower {}\ntrait Green {}\n",
        "constant LIMIT, function plant, class Tree, method grow, interface Grower, trait Green",
    ),
    "swift": (
        "struct Tree {\n  var size = 1\n  func grow() -> Int { return 1 }\n}\nprotocol Grower { func grow() }\nfunc plant() {}\n",
        "class Tree, method grow, interface Grower, function plant",
    ),
    "kotlin": (
        "class Tree {\n  fun grow(): Int {\n    return 1\n  }\n}\nobject Zoo {\n  fun open() {}\n}\nfun plant() = 3\nval limit = 1\n",
        "class Tree, method grow, class Zoo, method open, function plant, variable limit",
    ),
    "scala": (
        "class Tree(x: Int) {\n  def grow(): Int = 1\n}\nobject Zoo {\n  def open = 1\n}\ntrait Grower {\n  def grow: Int\n}\n",
        "class Tree, method grow, module Zoo, function open, trait Grower",
    ),
    "lua": (
        "local function plant()\nend\nfunction M.grow(x)\n  return x\nend\nlocal limit = 1\nM.water = function() end\n",
        "function plant, function M.grow, variable limit, function M.water",
    ),
    "bash": (
        "#!/bin/bash\nLIMIT=1\nplant() {\n  echo hi\n}\nfunction water {\n  :\n}\n",
        "variable LIMIT, function plant, function water",
    ),
    "sql": (
        "CREATE TABLE tree (size int);\nCREATE VIEW tall AS SELECT 1;\nCREATE INDEX by_size ON tree(size);\n",
        "table tree, table tall, key by_size",
    ),
    "css": (
        ".tree { color: green }\n#zoo > p { margin: 0 }\n@media print {\n  .tall { top: 0 }\n}\n",
        "rule .tree, rule #zoo > p, rule .tall",
    ),
    "html": (
        "<html><body><h1>Zoo</h1><p>a</p>\n<div><h2>Trees</h2>\n<p>b</p></div></body></html>\n",
        "heading Zoo, heading Trees",
    ),
    "json": ('{\n  "name": "zoo",\n  "trees": {\n    "a": 1\n  }\n}\n', "key name, key trees"),
    "toml": ('title = "zoo"\n\n[tree]\nsize = 1\n\n[[bird]]\nname = "x"\n', "key title, table tree, table bird"),
    "yaml": ("name: zoo\ntrees:\n  - a\n  - b\n", "key name, key trees"),
    "markdown": (
        "# Zoo\ntext\n\n## Trees\nmore\n```\n# no heading\n```\nBirds\n-----\nlast\n",
        "heading Zoo, heading Trees, heading Birds",
    ),
    "rst": ("Zoo\n===\n\ntext\n\nTrees\n-----\n\nmore\n", "heading Zoo, heading Trees"),
    "asciidoc": ("= Zoo\n\ntext\n\n== Trees\nmore\n", "heading Zoo, heading Trees"),
    "org": ("* Zoo\ntext\n** Trees\nmore\n", "heading Zoo, heading Trees"),
    "latex": ("\\section{Zoo}\ntext\n\\subsection{Trees}\nmore\n", "heading Zoo, heading Trees"),
}


def check_partition(data: bytes, language: str) -> None:
    at, line = 0, 1
    for chunk in cut(data, language):
        assert (chunk.start_byte, chunk.start_line) == (at, line)
        lines = data[chunk.start_byte : chunk.end_byte].count(b"\n")
        lines += 0 if data[: chunk.end_byte].endswith(b"\n") else 1
        assert chunk.end_line - chunk.start_line + 1 == lines
        at, line = chunk.end_byte, chunk.end_line + 1
    assert at == len(data)


def test_every_grammar_is_installed_and_proven_here() -> None:
    assert all(has_grammar(language) for language in GRAMMARS)
    assert set(GRAMMARS) <= set(SOURCES)


@pytest.mark.parametrize("language", SOURCES)
def test_definitions_and_headings_are_found(language: str) -> None:
    text, expected = SOURCES[language]
    found = [f"{chunk.kind} {chunk.name}" for chunk in cut(text.encode(), language) if chunk.name]
    once = list(dict.fromkeys(found))
    assert [entry for entry in expected.split(", ") if entry not in once] == []
    check_partition(text.encode(), language)


@pytest.mark.parametrize("language", SOURCES)
def test_a_text_cut_off_anywhere_is_still_cut_without_gaps(language: str) -> None:
    data = SOURCES[language][0].encode()
    for end in range(0, len(data), 7):
        check_partition(data[:end], language)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(SOURCES)))
def test_any_bytes_are_cut_without_gaps(data: bytes, language: str) -> None:
    check_partition(data.decode("utf-8", "replace").encode(), language)


def test_a_comment_and_a_decorator_belong_to_what_follows() -> None:
    text = "x = 1\n\n# explains\n# the next\n@decorator\ndef documented():\n    pass\n"
    (chunk,) = [c for c in cut(text.encode(), "python") if c.name == "documented"]
    assert text.encode()[chunk.start_byte : chunk.end_byte].decode().startswith("# explains")


def test_long_definitions_and_plain_texts_become_windows() -> None:
    body = "".join(f"    step_{n}()\n" for n in range(500))
    chunks = cut(f"def long():\n{body}".encode(), "python")
    assert len(chunks) > 3 and {c.name for c in chunks} == {"long"}
    assert all(c.end_line - c.start_line < MAX_LINES for c in chunks)
    chunks = cut(("word " * 200 + "\n").encode() * 300, "plain")
    assert all(c.end_byte - c.start_byte <= MAX_BYTES + 1001 for c in chunks)


def test_scopes_name_what_a_chunk_lies_in() -> None:
    by_name = {c.name: c.scope for c in cut(SOURCES["python"][0].encode(), "python")}
    assert by_name["grow"] == "Tree"
    by_name = {c.name: c.scope for c in cut(SOURCES["markdown"][0].encode(), "markdown")}
    assert by_name["Trees"] == "Zoo"


@pytest.mark.parametrize(
    ("path", "language", "source"),
    [
        ("a/b.py", "python", "code"),
        ("Makefile", "make", "code"),
        ("Dockerfile.dev", "dockerfile", "code"),
        ("README", "text", "prose"),
        ("README.md", "markdown", "prose"),
        ("x.unknown", "plain", "code"),
        ("noending", "plain", "code"),
        ("CMakeLists.txt", "cmake", "code"),
        ("LICENSE.txt", "text", "prose"),
    ],
)
def test_languages_are_known_by_name(path: str, language: str, source: str) -> None:
    assert language_of(path) == language
    assert source_of(language) == source
