"""docs/policy.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from wsh.policy import Kind, Reason
from wsh.policy.file.document import parse_policy
from wsh.policy.rule.table import render

PAGE = (Path(__file__).parents[3] / "docs/policy.md").read_text()


def test_the_page_holds_the_table_that_the_engine_makes() -> None:
    assert render() in PAGE, "run `python -m wsh.policy.rule.table` and put its output into docs/policy.md"


def test_the_example_policy_of_the_page_can_be_used() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(parse_policy(example).rules) == 7


def test_the_page_names_every_reason_and_every_class() -> None:
    for word in [*Reason, *Kind]:
        assert f"`{word.value}`" in PAGE, word
