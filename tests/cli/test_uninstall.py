from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.serving import running_server
from wsh.sandbox.point import SandboxLedger
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


def _uninstall(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WSH, "uninstall", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def test_purging_removes_what_wsh_wrote_and_nothing_else(places: Places, tmp_path: Path) -> None:
    beside = tmp_path / "config" / "systemd" / "user" / "wsh-like.service"
    beside.parent.mkdir(parents=True)
    beside.write_text("[Unit]\nDescription=another program\n")
    subprocess.run([*WSH, "service", "install", "--no-start"], check=True, capture_output=True)
    with running_server(places) as server:
        server.request("POST", "/sessions", {"name": "work", "command": "cat"})
        busy = _uninstall("--purge", "--yes")
        assert busy.returncode == 1 and "in use" in busy.stderr and "wsh stop" in busy.stderr
    listed = json.loads(_uninstall("--json").stdout)
    assert not listed["removed"] and places.state.exists()
    assert {str(places.state), str(places.config)} <= set(listed["found"])
    refused = _uninstall("--purge")
    assert refused.returncode == 1 and places.state.exists(), "nobody typed the word"
    done = json.loads(_uninstall("--purge", "--yes", "--json").stdout)
    assert done["removed"] and done["found"] == listed["found"]
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["config/systemd/user/wsh-like.service", *(name for name in left if name.startswith("server-"))]
    assert json.loads(_uninstall("--json").stdout)["found"] == []


def test_purging_takes_away_what_a_killed_server_left_in_a_project(places: Places, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    point = (str(project / ".vscode"), True)
    SandboxLedger(places.state / "sandbox", "gone").make_points("session", lambda made: [point])
    assert (project / ".vscode").is_dir()
    done = _uninstall("--purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert list(project.iterdir()) == [] and not places.state.exists()
