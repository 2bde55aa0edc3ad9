"""Problems with arguments name the field and say what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from wsh.mcp.near import find_near
from wsh.mcp.validate import MAX_VALUES, Validator

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "session": {"type": "string", "minLength": 1, "maxLength": 8, "description": "Name of the session."},
        "rows": {"type": "integer", "minimum": 1, "maximum": 1000},
        "format": {"type": "string", "enum": ["styled", "plain"]},
        "colour": {"anyOf": [{"type": "string", "pattern": "^#[0-9a-f]{6}$"}, {"type": "object"}]},
        "spans": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["session"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "path", "message", "hint"),
    [
        ({}, "session", "is required", "Name of the session."),
        ({"session": ""}, "session", "must not be empty", None),
        (
            {"session": "a", "spans": [{"text": "\ud800"}]},
            "spans.0.text",
            "holds half of a surrogate pair, which is no character",
            "Send whole text.",
        ),
        ({"session": "x" * 9}, "session", "must have at most 8 characters, not 9", None),
        ({"session": 5}, "session", "must be text, not 5", None),
        ({"session": "s", "rows": 0}, "rows", "must be at least 1, not 0", None),
        ({"session": "s", "rows": 1001}, "rows", "must be at most 1000, not 1001", None),
        ({"session": "s", "rows": True}, "rows", "must be a whole number, not True", None),
        ({"session": "s", "rows": 1.5}, "rows", "must be a whole number, not 1.5", None),
        ({"session": "s", "format": "stiled"}, "format", "must be one of 'styled', 'plain', not 'stiled'", "styled"),
        ({"session": "s", "row": 3}, "row", "is not a known argument", "Did you mean 'rows'?"),
        ({"session": "s", "zzz": 3}, "zzz", "is not a known argument", "Known arguments: session, rows"),
        ({"session": "s", "spans": [{"text": 1}]}, "spans.0.text", "must be text, not 1", None),
        ({"session": "s", "spans": [{}]}, "spans.0.text", "is required", None),
        ({"session": "s", "spans": [{"text": "", "x": 1}]}, "spans.0.x", "is not a known argument", "text"),
        ({"session": "s", "spans": [{"text": ""}] * 4}, "spans", "must have at most 3 entries", None),
        ({"session": "s", "colour": 3}, "colour", "has no accepted form: 3", "text or an object"),
        ([1], "", "must be an object, not [1]", None),
    ],
)
def test_a_problem_names_its_field_and_what_would_be_right(
    arguments: Any, path: str, message: str, hint: str | None
) -> None:
    problems = Validator(SCHEMA).find_problems(arguments)
    assert (problems[0].path, problems[0].message) == (path, message)
    assert (hint is None) or hint in (problems[0].hint or "")


def test_fitting_arguments_have_no_problem() -> None:
    arguments = {"session": "s", "rows": 24.0, "format": "plain", "colour": "#00ff00", "spans": [{"text": "x"}]}
    validator = Validator(SCHEMA)
    assert validator.find_problems(arguments) == []
    assert type(validator.normalise(arguments)["rows"]) is int


def test_several_problems_are_told_together() -> None:
    problems = Validator(SCHEMA).find_problems({"rows": 0, "format": "x"})
    assert {problem.path for problem in problems} == {"session", "rows", "format"}


def test_a_flood_of_values_is_refused_before_it_is_judged() -> None:
    problems = Validator(SCHEMA).find_problems({"session": "s", "spans": [{"text": ""}] * MAX_VALUES})
    assert "more than" in problems[0].message


def test_long_values_are_shown_short() -> None:
    problems = Validator(SCHEMA).find_problems({"session": "s", "format": "x" * 10_000})
    assert len(problems[0].message) < 200


@pytest.mark.parametrize(
    ("word", "near"), [("formatt", "format"), ("frmt", "format"), ("colour", None), ("format" * 200_000, None)]
)
def test_a_name_that_is_nearly_right_is_told(word: str, near: str | None) -> None:
    assert find_near(word, ["format", "rows"]) == near
