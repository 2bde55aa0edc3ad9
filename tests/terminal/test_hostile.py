"""Output made to hurt: the terminal stays sane, and its memory bounded."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.terminal.hostile import KINDS
from wsh.terminal import Terminal

MIB = 1024 * 1024
SLOW = {"repetitions"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_hostile_output_leaves_the_terminal_sane_and_bounded_in_memory(kind: str, torture: bool) -> None:
    total = (MIB // 16 if kind in SLOW else 2 * MIB) if not torture else (MIB if kind in SLOW else 100 * MIB)
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.terminal.hostile", kind, str(total)],
        check=True,
        capture_output=True,
        text=True,
    )
    outcome = json.loads(run.stdout)
    assert outcome["first"] == "still here"
    assert outcome["cursor"] == [0, 10]
    assert outcome["rows"] == 24
    assert outcome["waiting"] <= MIB + 1000
    # a full scrollback is 7 MB; text that is all styles and marks may take 40
    assert outcome["grown_kib"] < 48 * 1024, outcome


def test_utf8_split_at_every_offset_is_put_together() -> None:
    text = "aé日本🙂👩‍🚀e\u0301\u4e2d한z"
    raw = text.encode()
    with Terminal(2, 40) as whole:
        whole.feed(raw)
        expected = whole.screen(True)
    for cut in range(len(raw)):
        with Terminal(2, 40) as terminal:
            terminal.feed(raw[:cut])
            terminal.screen(True)
            terminal.feed(raw[cut:])
            assert terminal.screen(True).lines == expected.lines
            assert terminal.cursor == expected.cursor


def test_bytes_that_are_no_utf8_show_as_replacements_and_nothing_breaks() -> None:
    with Terminal(2, 40) as terminal:
        terminal.feed(b"a\xffb\xc3(c\xe6\x97")
        terminal.feed(b"!\xf0\x9f")
        terminal.feed(b"\x1b[1md")
        line = terminal.screen(False).lines[0]
        assert isinstance(line, str)
        for letter in "abc!d":
            assert letter in line
        assert "\ufffd" in line


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 1000), (1000, 1), (1000, 1000), (2, 2)])
def test_the_smallest_and_the_largest_size_work(rows: int, cols: int) -> None:
    with Terminal(24, 80) as terminal:
        terminal.feed("text \x1b[1;31m日本語\x1b[0m that wraps ".encode() * 50)
        terminal.resize(rows, cols)
        terminal.feed("more 日本\r\n\x1b[2J\x1b[Hend".encode())
        screen = terminal.screen(True)
        assert (len(screen.lines), screen.rows, screen.cols) == (rows, rows, cols)
        assert screen.cursor.row < rows
        assert screen.cursor.col < cols
        terminal.scrollback(limit=100_000, styled=True)
        with Terminal.restore(terminal.snapshot()) as restored:
            assert restored.screen(True).lines == screen.lines
        with Terminal(rows, cols) as other:
            other.feed(terminal.replay())
            assert other.screen(False).lines == terminal.screen(False).lines
        terminal.resize(24, 80)
        terminal.feed(b"\x1bcok")
        assert terminal.screen(False).lines[0] == "ok"
