"""`wsh run`: the command's own output and status, for scripts."""

from __future__ import annotations

import subprocess
import sys

from tests.support.serving import running_server
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


def test_run_prints_all_of_a_long_output_and_ends_with_the_commands_status(places: Places) -> None:
    with running_server(places) as server:
        assert server.request("POST", "/sessions", {"name": "work", "command": "bash --norc"}).status == 201
        done = subprocess.run([*WSH, "run", "work", "seq 40000; (exit 42)"], capture_output=True, text=True, timeout=60)
        assert done.stdout.split() == [str(number) for number in range(1, 40001)]
        assert (done.returncode, done.stderr) == (42, "")
        cut = subprocess.run(
            [*WSH, "run", "--max-output-bytes", "1000", "work", "seq 40000"], capture_output=True, text=True, timeout=60
        )
        assert len(cut.stdout) < 1200 and "left out" in cut.stdout
