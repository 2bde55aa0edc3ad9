"""`wsh run`: the command's own output and status, for scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.serving import running_server
from tests.support.warm import run_warm
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


def test_run_prints_all_of_a_long_output_and_ends_with_the_commands_status(places: Places) -> None:
    with running_server(places) as server:
        assert server.request("POST", "/sessions", {"name": "work", "command": "bash --norc"}).status == 201
        done = run_warm([*WSH, "run", "work", "seq 40000; (exit 42)"], text=True)
        assert done.stdout.split() == [str(number) for number in range(1, 40001)]
        assert (done.returncode, done.stderr) == (42, "")
        cut = run_warm([*WSH, "run", "--max-output-bytes", "1000", "work", "seq 40000"], text=True)
        assert len(cut.stdout) < 1200 and "left out" in cut.stdout


def test_a_command_that_asks_for_something_has_not_succeeded(places: Places, tmp_path: Path) -> None:
    asks = tmp_path / "asks"
    asks.write_text("#!/bin/sh\nprintf 'Password: '; stty -echo; read -r secret; stty echo; echo; exit 5\n")
    asks.chmod(0o755)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_warm([*WSH, "run", "--timeout-ms", "300", *words[:-1], "work", words[-1]], text=True)

    with running_server(places) as server:
        assert server.request("POST", "/sessions", {"name": "work", "command": "bash --norc"}).status == 201
        done = run(str(asks))
        assert done.returncode == 7 and "Password:" in done.stdout
        assert "asks for something hidden" in done.stderr and "has not ended" in done.stderr
        server.request("POST", "/sessions/work/input", b"secret\r")
        ended = run_warm([*WSH, "wait", "--prompt", "work"], text=True)
        assert ended.returncode == 0
        done = run("read -r -p 'Go on? ' answer")
        assert done.returncode == 7 and "waits for input" in done.stderr
        # The next line of a script is no answer.
        done = run("echo next")
        assert done.returncode == 1 and "`read -r -p 'Go on? ' answer` runs and asks for input" in done.stderr
        assert "wsh send work --enter" in done.stderr
        assert run("--answer", "yes").returncode == 0
        # A program to work with was started well, and takes lines.
        assert run(f"{sys.executable} -q").returncode == 0
        assert (run("1 + 1").returncode, run("exit()").returncode) == (0, 0)


def test_an_unfinished_command_has_not_succeeded(places: Places) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_warm([*WSH, "run", "--timeout-ms", "300", *words], text=True)

    with running_server(places) as server:
        for shell in ("bash --norc", "zsh", "fish"):
            name = shell.split()[0]
            assert server.request("POST", "/sessions", {"name": name, "command": shell}).status == 201
            done = run(name, 'echo "a')
            assert done.returncode == 7 and "asks for the rest of the command" in done.stderr
            refused = run(name, "echo next")
            assert refused.returncode == 1 and "'echo \"a" in refused.stderr
            assert "Nothing was typed" in refused.stderr
        # A comment is a whole line.
        assert run("--clear-line", "bash", "# nothing").returncode == 0
