"""Which language a file is in, whether it is code or prose, and where its grammar comes from.

Known by name and ending, never by content: the answer must be the same for a file that cannot be read. Grammars are
separate wheels and are imported when first needed; one that is missing only means chunks by lines.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from pathlib import PurePosixPath
from typing import Literal

from tree_sitter import Language, Parser

Source = Literal["code", "prose"]

# language: (module of the grammar, function in it)
GRAMMARS: dict[str, tuple[str, str]] = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "css": ("tree_sitter_css", "language"),
    "go": ("tree_sitter_go", "language"),
    "html": ("tree_sitter_html", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "json": ("tree_sitter_json", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "scala": ("tree_sitter_scala", "language"),
    "sql": ("tree_sitter_sql", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "toml": ("tree_sitter_toml", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "yaml": ("tree_sitter_yaml", "language"),
}

_ENDINGS: dict[str, str] = {}
for _language, _endings in {
    "bash": "sh bash zsh ksh bats ebuild",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl cu cuh",
    "csharp": "cs",
    "css": "css",
    "go": "go",
    "html": "html htm xhtml",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "json": "json jsonc geojson webmanifest",
    "kotlin": "kt kts",
    "lua": "lua",
    "php": "php phtml",
    "python": "py pyi pyw",
    "ruby": "rb rake gemspec ru",
    "rust": "rs",
    "scala": "scala sc sbt",
    "sql": "sql ddl dml",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "ts mts cts",
    "yaml": "yaml yml",
    # known by name, cut by lines
    "asm": "s asm",
    "clojure": "clj cljs cljc edn",
    "cmake": "cmake",
    "cython": "pyx pxd pxi",
    "dart": "dart",
    "diff": "diff patch",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fish": "fish",
    "graphql": "graphql gql",
    "haskell": "hs lhs",
    "ini": "ini cfg conf properties editorconfig",
    "julia": "jl",
    "less": "less",
    "nix": "nix",
    "objc": "m mm",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "powershell": "ps1 psm1 psd1",
    "protobuf": "proto",
    "qml": "qml",
    "query": "scm",
    "r": "r",
    "sass": "scss sass",
    "svelte": "svelte",
    "terraform": "tf tfvars hcl",
    "vim": "vim",
    "vue": "vue",
    "xml": "xml xsd xsl svg plist ui qrc",
    "zig": "zig",
    # prose
    "asciidoc": "adoc asciidoc",
    "latex": "tex",
    "markdown": "md markdown mdx mkd",
    "org": "org",
    "rst": "rst rest",
    "text": "txt text log",
}.items():
    for _ending in _endings.split():
        _ENDINGS[_ending] = _language

_NAMES: dict[str, str] = {
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "makefile": "make",
    "gnumakefile": "make",
    "cmakelists.txt": "cmake",
    "gemfile": "ruby",
    "rakefile": "ruby",
    "vagrantfile": "ruby",
    "jenkinsfile": "groovy",
    "go.mod": "go-mod",
    "pkgbuild": "bash",
    ".bashrc": "bash",
    ".bash_profile": "bash",
    ".profile": "bash",
    ".zshrc": "bash",
    ".gitignore": "ini",
    ".gitattributes": "ini",
    "metadata": "text",
    "license": "text",
    "licence": "text",
    "copying": "text",
    "authors": "text",
    "contributors": "text",
    "notice": "text",
    "readme": "text",
    "changelog": "text",
    "changes": "text",
    "news": "text",
    "todo": "text",
    "install": "text",
}

PROSE = frozenset({"asciidoc", "latex", "markdown", "org", "rst", "text"})
LANGUAGES = sorted({*_ENDINGS.values(), *_NAMES.values(), "plain"})


def language_of(path: str) -> str:
    """The language's name for a path; `plain` when nothing is known about it."""
    name = PurePosixPath(path).name.lower()
    known = _NAMES.get(name)
    if known:
        return known
    stem, dot, ending = name.rpartition(".")
    if dot and ending in _ENDINGS:
        return _ENDINGS[ending]
    return _NAMES.get(stem, "plain") if dot else "plain"


def source_of(language: str) -> Source:
    return "prose" if language in PROSE else "code"


def has_grammar(language: str) -> bool:
    """Whether the grammar is installed; cheap, imports nothing."""
    named = GRAMMARS.get(language)
    return named is not None and importlib.util.find_spec(named[0]) is not None


@cache
def find_parser(language: str) -> Parser | None:
    """A parser of this process for `language`, or None when there is no usable grammar."""
    named = GRAMMARS.get(language)
    if named is None:
        return None
    try:
        return Parser(Language(getattr(importlib.import_module(named[0]), named[1])()))
    except (ImportError, AttributeError, ValueError):
        return None
