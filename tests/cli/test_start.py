"""What short commands import: all of it is paid for at every call, and some of it costs more than the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import Places

# Each takes as long as a quarter of the interpreter's own start, or longer.
HEAVY = {
    "json", "re", "enum", "typing", "dataclasses", "inspect", "pathlib", "tempfile", "shutil", "functools", "contextlib",
    "asyncio", "socket", "subprocess", "threading", "logging", "secrets", "random", "hashlib", "tomllib", "datetime",
    "http", "urllib", "ssl", "click", "rich", "pydantic", "wsh.policy", "wsh.wire.system.place",
}  # fmt: skip
COMMANDS = [
    "list", "list --json", "status", "screen x", "scrollback x", "send x y", "keys x enter", "run x true", "resize x 24 80",
    "wait x --quiet-ms 1", "new --name y true", "rename x x", "tag x t", "detach x", "kill y", "export x", "play x --json",
    "search zzz", "index status", "link", "token --list", "config", "uninstall", "service status",
    "inbox", "hook", "hook test ls",
    "shell-integration bash", "shell-integration zsh", "shell-integration fish", "attach x", "screen nosuch", "--version", "--help",
]  # fmt: skip
_MAIN = "import sys; sys.argv[0] = 'wsh'; from wsh.cli.main import main; main()"


@pytest.fixture
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places) as server:
        _run("new --name x sh", ())
        yield server


def _run(command: str, options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-I", *options, "-c", _MAIN, *command.split()]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def test_no_short_command_imports_what_takes_longer_than_itself(server: RunningServer) -> None:
    before = _imported(
        subprocess.run([sys.executable, "-I", "-X", "importtime", "-c", "pass"], capture_output=True, text=True).stderr
    )
    found = {}
    for command in COMMANDS:
        done = _run(command, ("-X", "importtime"))
        assert "Traceback" not in done.stderr, done.stderr
        heavy = HEAVY & (_imported(done.stderr) - before)
        if heavy:
            found[command] = sorted(heavy)
    assert found == {}


def test_no_runtime_folder_costs_nothing_more(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.path.join(str(places.runtime), "nowhere"))
    monkeypatch.delenv("TMPDIR", raising=False)  # a short path: a long one gets a stand-in with a digest in its name
    monkeypatch.setenv("WSH_SERVER", "nobody")
    assert HEAVY & _imported(_run("list", ("-X", "importtime")).stderr) == set()


def _imported(log: str) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:")}
