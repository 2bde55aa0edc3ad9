"""A secret on the command line is shown by nobody's `ps`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SECRET = "correct-horse-battery-staple"
SHOW = "import sys; from wsh.wire.system.hidden_word import hide_word; hide_word(sys.argv[1]); print('hidden', flush=True); input()"


def test_a_word_is_hidden_from_all_who_list_processes() -> None:
    words = [sys.executable, "-c", SHOW, SECRET, f"--token={SECRET}", "kept"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "hidden\n"
        shown = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
        process.communicate("\n")
    stars = "*" * len(SECRET)
    assert shown[3:] == [stars, f"--token={stars}", "kept", ""]
