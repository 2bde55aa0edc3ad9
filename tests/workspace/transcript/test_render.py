"""Raw output becomes readable text: no escapes, no overwritten pieces, one line per progress bar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsh.workspace.transcript.render import plain_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[31mred\x1b[0m plain\r\n", "red plain\n"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"long text\rshort\x1b[K\n", "short\n"),
        (b"abc\b\bX\n", "aXc\n"),
        (b"a\x07b\x00c", "abc"),
        ("größe\n".encode(), "größe\n"),
        (b"bad \xff byte", "bad \ufffd byte"),
        (b"trailing   \nnext", "trailing\nnext"),
    ],
)
def test_what_stays_readable_is_kept(raw: bytes, text: str) -> None:
    assert plain_text(raw) == text


def test_a_progress_bar_becomes_its_last_state() -> None:
    bars = "".join(f"[{'#' * n}{'.' * (20 - n)}] {n * 5}%\n" for n in range(21))
    assert plain_text(f"start\n{bars}done\n") == f"start\n[{'#' * 20}] 100%\ndone\n"


def test_lines_that_only_count_are_kept() -> None:
    text = "item 1\nitem 2\nitem 3\nitem 4\n"
    assert plain_text(text) == text


@given(st.binary(max_size=300))
def test_no_bytes_leave_a_control_character_behind(raw: bytes) -> None:
    assert not any(c < " " and c not in "\n\t" for c in plain_text(raw))
