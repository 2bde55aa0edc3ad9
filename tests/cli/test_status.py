"""What `wsh status` prints of sessions is text: names come from files and programs."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.serving import running_server
from tests.support.waiting import HANG_S
from tests.support.warm import run_warm
from wsh.wire.system.place import Places


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return run_warm([sys.executable, "-m", "wsh.cli.main", *words], text=True, timeout=HANG_S)


def test_control_characters_in_a_damaged_name_stay_out_of_the_terminal(places: Places) -> None:
    folder = places.sessions / "damaged"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "meta.json").write_text(json.dumps({"sid": "damaged", "name": "a\x1b]2;title\x07b", "running": True}))
    with running_server(places, check_left=False):
        told = run("status")
        assert told.returncode == 0 and "its keeper is gone" in told.stderr, told
        assert "\x1b" not in told.stderr and "\x07" not in told.stderr, told
        assert "a\ufffd]2;title\ufffdb" in told.stderr, told
