"""YAML by hand, judged by a YAML library."""

from __future__ import annotations

import time
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from wsh.contract.reply.yaml_text import to_yaml

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\n \t\r:#-|>'\"\\{}[]&*!%@`\x00\x1b\x85\u2028\ufeff"))


@settings(max_examples=500, deadline=None)
@given(TEXTS, TEXTS, st.integers(-200, 300))
def test_every_text_comes_back(stdout: str, stderr: str, code: int) -> None:
    fields: dict[str, str | int | None] = {"exit_code": code, "stdout": stdout, "stderr": stderr}
    assert yaml.safe_load(to_yaml(fields)) == fields


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS, st.integers(-200, 300))
def test_every_text_of_a_mapping_inside_comes_back(one: str, other: str, number: int) -> None:
    fields: dict[str, Any] = {
        "stdout": one,
        "outside": {"note": other, "left": number, "by": None, "done": True},
        "stderr": other,
    }
    assert yaml.safe_load(to_yaml(fields)) == fields


def test_several_lines_are_a_block_as_a_person_would_write_it() -> None:
    assert to_yaml({"stdout": "a\n  b\n"}) == "stdout: |\n  a\n    b\n"
    assert to_yaml({"stdout": "a\n\nb"}) == "stdout: |-\n  a\n\n  b\n"
    assert to_yaml({"stdout": "  a\nb\n"}) == "stdout: |2\n    a\n  b\n"
    assert to_yaml({"exit_code": None, "stdout": ""}) == 'exit_code: null\nstdout: ""\n'


def test_the_time_for_megabytes_grows_with_their_length() -> None:
    def cpu_s(lines: int) -> float:
        text = "some line of output\n" * lines
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            made = to_yaml({"stdout": text})
            best = min(best, time.thread_time() - began)
            assert len(made) > len(text)
        return best

    assert cpu_s(100_000) < max(0.05, cpu_s(12_500) * 24)
