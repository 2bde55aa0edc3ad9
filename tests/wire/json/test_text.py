"""The quick way to read and write JSON says what the package says."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsh.wire.json.text import read_json, write_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

calmly = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@calmly
@given(VALUES, st.booleans())
def test_what_is_written_is_what_the_package_writes(value: object, ascii_only: bool) -> None:
    assert write_json(value, ascii_only=ascii_only) == json.dumps(value, ensure_ascii=ascii_only)


@calmly
@given(VALUES, st.sampled_from([None, 1]), st.sampled_from(["", " ", "\n\t\r "]))
def test_what_is_read_is_what_the_package_reads(value: object, indent: int | None, around: str) -> None:
    text = around + json.dumps(value, indent=indent) + around
    assert read_json(text) == read_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"a":', "nul", "[1,]", "1 2", '"\x01"', '{"a" 1}', "\u00a01", "\ufeff1"]
)
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        read_json(text)


def test_numbers_that_json_has_no_word_for_are_read_as_the_package_reads_them() -> None:
    assert read_json("[Infinity, -Infinity]") == [math.inf, -math.inf]
    assert math.isnan(read_json("NaN"))


def test_what_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(TypeError, match="set"):
        write_json({"a": {1}})


def test_reading_and_writing_imports_neither_the_package_nor_regular_expressions() -> None:
    script = (
        "import sys; from wsh.wire.json.text import read_json, write_json\n"
        "write_json(read_json('{\"a\": [1.5, null]}')); print(*sorted({'json', 're', 'enum'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_an_interpreter_without_the_built_in_scanner_uses_the_package() -> None:
    script = (
        "import sys; sys.modules['_json'] = None\n"
        "from wsh.wire.json.text import read_json, write_json; print(write_json(read_json('[1, \"é\"]')))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == '[1, "\\u00e9"]\n'
