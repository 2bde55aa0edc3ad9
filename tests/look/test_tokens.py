from __future__ import annotations

import pytest

from wsh.look import css, load


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_and_states_can_be_read_on_every_ground(theme: str) -> None:
    colors = load()[theme]
    for ground in ("ground", "raised", "sunken", "hover", "selected"):
        for text in ("text", "text_soft"):
            assert _contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
        for state in ("running", "waiting", "hidden", "attention", "ended", "failed", "captured", "danger", "accent"):
            assert _contrast(colors[state], colors[ground]) >= 3, (state, ground)
    assert _contrast(colors["on_accent"], colors["accent"]) >= 4.5


def test_both_themes_have_the_same_tokens_and_all_reach_the_page() -> None:
    tokens = load()
    assert set(tokens["dark"]) == set(tokens["light"])
    text = css()
    for name in tokens["dark"]:
        assert text.count(f"--{name.replace('_', '-')}:") == 3


def test_every_state_has_a_colour_a_shape_and_a_word() -> None:
    tokens = load()
    for state in tokens["states"].values():
        assert state["word"] and state["shape"] and state["color"] in tokens["dark"]
