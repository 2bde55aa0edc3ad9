"""The quick yes never says yes where the validator would not, and says it for the arguments that tools are called with."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from wsh.mcp.tool.all import list_tools
from wsh.wire.json.fit import make_check
from wsh.wire.setting import load
from wsh.wire.surrogate import find_unsound
from wsh.wire.system.place import Places

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 4, "description": "a name"},
        "kind": {"type": "string", "enum": ["a", "b", 3]},
        "rows": {"type": "integer", "minimum": 0, "maximum": 3},
        "part": {"type": "number", "minimum": 0.5},
        "flag": {"type": ["boolean", "null"]},
        "list": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "inner": {
            "type": "object",
            "properties": {"x": {"type": "integer"}},
            "required": ["x"],
            "additionalProperties": False,
        },
        "form": {"type": "string", "pattern": "^x"},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "odd": {"type": "string", "format": "date"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 5),
    st.sampled_from([0.5, 1.0, 1.5, 0.1]),
    st.sampled_from(["", "a", "b", "xyzzy", "é", "\ud800", "2026-01-01"]),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["x", "y"]), SCALARS, max_size=2),
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "unknown"]), VALUES, max_size=4))
def test_yes_means_that_the_validator_finds_nothing(arguments: dict[str, Any]) -> None:
    if make_check(SCHEMA)(arguments):
        assert not list(Draft202012Validator(SCHEMA).iter_errors(arguments))
        assert find_unsound(arguments) is None


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"name": "n", "kind": "b", "rows": 3, "part": 2, "flag": None, "list": ["x"], "inner": {"x": 1}}, True),
        ({"name": "é"}, True),
        ({}, False),
        ({"name": "\ud800"}, False),
        ({"name": "n", "rows": True}, False),
        ({"name": "n", "rows": 1.0}, False),
        ({"name": "n", "form": "xy"}, False),
        ({"name": "n", "either": 1}, False),
        ({"name": "n", "map": {}}, False),
        ({"name": "n", "inner": {}}, False),
        ([], False),
    ],
)
def test_which_arguments_have_the_quick_yes(arguments: Any, fits: bool) -> None:
    assert make_check(SCHEMA)(arguments) is fits


def test_most_tools_have_it(places: Places) -> None:
    tools = list_tools(load(places.config_file), {})
    checks = {tool.name: make_check(tool.input_schema) for tool in tools}
    assert checks["wsh_get_screen"]({"session": "s", "format": "plain"})
    assert checks["wsh_send_input"]({"session": "s", "input": "ls\n"})
