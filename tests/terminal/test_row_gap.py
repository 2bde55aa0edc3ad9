"""Cells that nobody wrote, between cells of a style that blanks show, on the screen and in the scrollback."""

from __future__ import annotations

import pytest

from wsh.terminal import Terminal


@pytest.mark.parametrize(
    ("style", "told"),
    [
        (b"7", {"inverse": True}),
        (b"4", {"underline": True}),
        (b"44", {"bg": {"indexed": 4}}),
        (b"1;7;36", {"fg": {"indexed": 6}, "bold": True, "inverse": True}),
        (b"9", {"strikethrough": True}),
    ],
)
@pytest.mark.parametrize("text", ["A", "日", "A "])
def test_a_gap_inside_of_a_styled_run_is_plain(style: bytes, told: dict[str, object], text: str) -> None:
    with Terminal(3, 20) as terminal:
        terminal.feed(b"\x1b[%bm%b\x1b[10GB C\x1b[0m" % (style, text.encode()))
        width = 2 if text == "日" else len(text)
        expected = [{"text": text, **told}, {"text": " " * (9 - width)}, {"text": "B C", **told}]
        assert terminal.screen(True).lines[0] == expected
        terminal.feed(b"\r\n" * 5)
        assert terminal.scrollback(limit=20, styled=True).lines[0] == expected
