"""Tokens are counted within a tenth of a real tokenizer, and what is chosen keeps within them."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from pathlib import Path

import pytest

from tests.support.mcp.tokens import count_exactly
from wsh.mcp.budget import NumberedLine, clip, collapse, count_tokens, fit_rows, number_lines

ROOT = Path(__file__).parents[2]


def _sample() -> dict[str, str]:
    """What terminals print, the same on every machine."""
    chance = random.Random(7)
    names = sorted(path.name for path in (ROOT / "src" / "wsh").rglob("*.py"))
    sources = sorted((ROOT / "src" / "wsh" / "session").glob("*.py"))
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py"))
    months = ("Jan", "Mar", "Jun", "Nov")
    listing = [
        f"-rw-r--r-- 1 root root {chance.randrange(90_000):>6} {chance.choice(months)} {chance.randrange(10, 28)} "
        f"{chance.randrange(10, 23)}:{chance.randrange(10, 59)} {name}"
        for name in names
    ]
    grep = [f"{path}:{chance.randrange(1, 300)}:    def run(self) -> None:" for path in paths]
    pytest_lines = [
        f"tests/{name.removesuffix('.py')}/test_{name}::test_it_works {chance.choice(('PASSED', 'FAILED'))} [{at % 100:3}%]"
        for at, name in enumerate(names)
    ]
    compiler = [
        f"gcc -O2 -Wall -c src/{name.removesuffix('.py')}.c -o build/{name.removesuffix('.py')}.o\n"
        f"src/{name.removesuffix('.py')}.c:{at + 10}:5: warning: unused variable 'count' [-Wunused-variable]"
        for at, name in enumerate(names)
    ]
    commits = [
        f"commit {hashlib.sha1(name.encode()).hexdigest()}\nAuthor: A Person <person@example.org>\n"
        f"Date:   Mon {months[at % 4]} {at % 28 + 1} 12:{at % 50 + 10}:00 2026 +0000\n\n    Rename {name} and say what it does\n"
        for at, name in enumerate(names)
    ]
    diff = "\n".join(f"{'+- '[at % 3]}{line}" for at, line in enumerate(sources[3].read_text().splitlines()))
    return {
        "ls -l": "\n".join(listing),
        "find": "\n".join(paths),
        "grep": "\n".join(grep),
        "pytest": "\n".join(pytest_lines),
        "make": "\n".join(compiler),
        "git log": "\n".join(commits),
        "git diff": diff,
        "source": "\n".join(path.read_text() for path in sources[:6]),
        "prose": (ROOT / "docs" / "keeper.md").read_text(),
        "seq": "\n".join(map(str, range(1, 4000))),
        "json": json.dumps(
            [{"id": at, "name": name, "running": at % 2 == 0} for at, name in enumerate(names)], indent=1
        ),
        "sha256sum": "\n".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in names),
        "base64": base64.encodebytes(chance.randbytes(6000)).decode(),
    }


@pytest.mark.timeout(900)
def test_the_cheap_count_is_within_a_tenth_of_a_real_tokenizer() -> None:
    samples = _sample()
    exact = dict(zip(samples, count_exactly(list(samples.values())), strict=True))
    off = {name: round(count_tokens(text) / exact[name] - 1, 3) for name, text in samples.items()}
    assert all(abs(error) <= 0.1 for error in off.values()), off


def _explain(first: int, last: int, wrong: int) -> str:
    return f"[{first}-{last} left out, {wrong} wrong]"


def test_head_tail_and_every_line_that_names_an_error_are_kept_with_its_number() -> None:
    lines = [f"compiling part {at} of the program" for at in range(1, 3001)]
    lines[1499] = "main.c:3:1: error: expected ';'"
    lines[1999] = "E       ZeroDivisionError: division by zero"
    shown = fit_rows(number_lines(lines), 400, _explain)
    assert shown[0] == lines[0] and shown[-1] == lines[-1]
    assert f"1500: {lines[1499]}" in shown and f"2000: {lines[1999]}" in shown
    assert any("left out, 2 wrong" in line for line in shown)
    assert count_tokens("\n".join(shown)) <= 400


@pytest.mark.parametrize("budget", [100, 400, 4000])
@pytest.mark.parametrize("name", ["ls -l", "pytest", "base64", "seq", "source"])
def test_what_is_chosen_keeps_within_the_budget(name: str, budget: int) -> None:
    rows = number_lines(_sample()[name].split("\n"))
    assert count_tokens("\n".join(fit_rows(rows, budget, _explain))) <= budget


def test_one_endless_line_is_cut_in_its_middle() -> None:
    shown = fit_rows([NumberedLine(1, "ab cd " * 100_000)], 200, _explain)
    assert count_tokens("\n".join(shown)) <= 200
    assert "characters" in shown[0] and shown[0].startswith("ab cd") and shown[0].rstrip().endswith("cd")
    assert clip("short", 10) == "short"


def test_repeated_lines_and_progress_are_what_they_ended_as() -> None:
    lines = ["start", *[f"[{'#' * (at // 10):10}] {at}% of file.iso" for at in range(0, 101)], *["y"] * 50, "end"]
    assert [row.text for row in collapse(number_lines(lines))] == [
        "start",
        "[##########] 100% of file.iso  [lines 2-102: progress]",
        "y  [lines 103-152: the same line]",
        "end",
    ]


def test_lines_that_merely_count_are_not_progress() -> None:
    lines = [str(at) for at in range(50)] + [f"file-{at}.txt" for at in range(50)]
    assert [row.text for row in collapse(number_lines(lines))] == lines
