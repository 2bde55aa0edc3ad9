"""`wsh play` on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import tty
from pathlib import Path

import pytest

from tests.support.pane import read_until
from tests.support.waiting import HANG_S
from tests.support.warm import run_warm

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


def test_what_the_terminal_answers_to_a_recorded_question_is_no_input_for_the_shell(tmp_path: Path) -> None:
    cast = tmp_path / "asks.cast"
    # More than a terminal holds, so that playing goes on until the answer was given.
    moments = [[0, "o", "what are you?\x1b[c"], [0, "o", "x" * 300_000], [0, "o", "done"]]
    cast.write_text("".join(json.dumps(line) + "\n" for line in [{"version": 2, "width": 80, "height": 24}, *moments]))
    ours, theirs = pty.openpty()
    try:
        before = termios.tcgetattr(theirs)
        with subprocess.Popen([*WSH, "play", str(cast)], stdin=theirs, stdout=theirs) as process:
            shown = read_until(ours, lambda seen: b"\x1b[c" in seen, b"")
            os.write(ours, b"\x1b[?62;22c")
            shown = read_until(ours, lambda seen: b"\x1b8" in seen, shown)
            assert process.wait(HANG_S) == 0
        assert b"62;22" not in shown, "the answer was shown"
        assert termios.tcgetattr(theirs) == before
        tty.setraw(theirs, termios.TCSANOW)
        assert struct.unpack("i", fcntl.ioctl(theirs, termios.FIONREAD, bytes(4))) == (0,)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("line", ['[1e400, "o", "x"]', '[NaN, "o", "x"]', '[1e12, "o", "x"]', '[0, "o", null]'])
def test_a_moment_that_cannot_be_is_damage(tmp_path: Path, line: str) -> None:
    cast = tmp_path / "bad.cast"
    cast.write_text('{"version": 2, "width": 80, "height": 24}\n' + line + "\n")
    done = run_warm([*WSH, "play", str(cast)], text=True)
    assert (done.returncode, done.stderr) == (1, "wsh: line 2 of the recording is damaged\n")
