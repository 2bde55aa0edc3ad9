"""What is chosen to be shown keeps within the tokens it may cost."""

from __future__ import annotations

import pytest

from tests.support.mcp.samples import make_printouts
from wsh.mcp.budget import NumberedLine, clip, clip_around, collapse, count_tokens, fit_rows, number_lines


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
    rows = number_lines(make_printouts()[name].split("\n"))
    assert count_tokens("\n".join(fit_rows(rows, budget, _explain))) <= budget


@pytest.mark.parametrize("budget", [60, 80, 120, 300])
def test_small_budgets_are_kept_with_many_errors_and_long_lines(budget: int) -> None:
    lines = [f"{'word ' * (at % 40)}fails with error {at}" for at in range(400)]
    assert count_tokens("\n".join(fit_rows(number_lines(lines), budget, _explain))) <= budget


def test_a_line_is_cut_around_what_was_found_in_it() -> None:
    line = "left " * 5000 + "Found it" + " right" * 5000
    shown = clip_around(line, "found", 60)
    assert "Found it" in shown and shown.startswith("[… ") and shown.endswith(" characters …]")
    assert count_tokens(shown) <= 60
    assert clip_around("short", "or", 60) == "short"
    assert clip_around("x" * 500 + "end", "end", 20).endswith("end")


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
