"""The cheap count of tokens, held against a real tokenizer on code, logs, tables, languages, emoji, digests, JSON and paths."""

from __future__ import annotations

import pytest

from tests.support.mcp.samples import make_printouts, make_samples
from tests.support.mcp.tokens import count_exactly
from wsh.mcp.token_count import count_tokens


@pytest.mark.timeout(900)
def test_every_kind_of_text_is_counted_within_a_tenth() -> None:
    samples = make_samples() | {f"printed: {name}": text for name, text in make_printouts().items()}
    assert len(samples) >= 30
    exact = dict(zip(samples, count_exactly(list(samples.values())), strict=True))
    off = {name: round(count_tokens(text) / exact[name] - 1, 3) for name, text in samples.items()}
    assert {name: error for name, error in off.items() if abs(error) > 0.1} == {}


def test_what_has_no_words_is_counted_too() -> None:
    assert count_tokens("") == 0
    assert count_tokens("\n") == 1
    assert 1 <= count_tokens(" " * 1000) <= 20
    assert 1 <= count_tokens("\0" * 50) <= 100
    assert count_tokens("=" * 79) < 10
