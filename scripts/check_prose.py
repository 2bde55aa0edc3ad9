"""Check what people read: words to avoid, how docstrings open and end, and links that lead nowhere. `make check` runs it.

Docstrings of `src/` and every Markdown page are looked at. Code in backticks and in blocks is not prose.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

AVOID = {
    "seed rule": "say which rule it is",
    "seed rules": "say which rules they are",
    "no matter for": "ignored for",
    "when it is just that": "say what it is",
    "what was to be": "name it",
    "reaped by nobody": "say who reaps it",
    "an id that means the same": "an equivalent id",
    "after 'removed' it is how it was": "its last state",
    "how it was": "its last state",
    "other than it was": "changed",
    "another than it was": "changed",
    "whether somebody was": "True if",
    "too busy to be": "True if any was skipped as busy",
    "whoever": "name the person, the caller or the process",
    "whoever's": "name the person, the caller or the process",
    "farewell": "say what ends",
    "that counted": "accepted",
    "right already": "say what checked it",
    "nobody's business": "say who may see it",
    "papered over": "say what hides it",
    "leverage": "use",
    "utilize": "use",
    "seamless": "say what the user need not do",
    "seamlessly": "say what the user need not do",
    "blazing": "give the figure",
    "obviously": "leave it out",
    "please note": "leave it out",
    "in order to": "to",
    "and/or": "or",
}
"""What to say instead."""

VERBLESS = re.compile(r"; (?:whether|how many) [^.]*\.$")
"""A result that hangs behind a semicolon: say what is returned in a sentence of its own."""

OPENINGS = re.compile(r"(?:It|Its|They|Them|Those|These|That|He|Whoever|Not)\b")
"""A pronoun has nothing to refer to yet, and a negation nothing to deny."""

LOWER_CASE = ("wsh", "git", "fish", "connect")
"""Programs and functions that a docstring may begin with."""

PAGES = (
    "*.md",
    "docs/**/*.md",
    "container/**/*.md",
    "skills/**/*.md",
    "src/wsh/skills/**/*.md",
    "instructions/**/*.md",
)


def list_pages() -> list[Path]:
    return sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})


def check_docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text:
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            for fault in (*check_docstring(text), *check_words(text)):
                yield f"{place}: {fault}"


def check_docstring(text: str) -> Iterator[str]:
    first = text.split("\n\n")[0].rstrip()
    if OPENINGS.match(first):
        yield f"opens with {first.split()[0]!r}; begin with what it is or does"
    if first[0].islower() and not first.startswith(LOWER_CASE):
        yield f"opens with a small letter: {first[:40]!r}"
    if VERBLESS.search(first):
        yield f"returns without a verb: {first[-50:]!r}"
    if first[-1] not in ".:?!`)\"'…":
        yield f"its first paragraph has no end: {first[-40:]!r}"


def check_words(text: str) -> Iterator[str]:
    prose = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)).lower()
    for words, instead in AVOID.items():
        if re.search(rf"\b{re.escape(words)}\b", prose):
            yield f"{words!r}: {instead}"


def check_links(page: Path) -> Iterator[str]:
    """Relative links whose file or heading is not there."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        if not file.exists():
            yield f"there is no {name}"
        elif anchor and file.suffix == ".md" and anchor not in list_anchors(file.read_text(encoding="utf-8")):
            yield f"there is no heading #{anchor} in {file.name}"


def list_anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_faults() -> Iterator[str]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield from check_docstrings(path)
    for page in list_pages():
        faults = check_links(page)
        # Old entries of the changelog stay as they were published.
        words = () if page.name == "CHANGELOG.md" else check_words(page.read_text(encoding="utf-8"))
        for fault in (*faults, *words):
            yield f"{page.relative_to(ROOT)}: {fault}"


if __name__ == "__main__":
    found = list(find_faults())
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
