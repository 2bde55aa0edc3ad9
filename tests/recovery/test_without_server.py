"""Ending sessions where no server runs: through the keeper."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psutil

from tests.support.serving import running_server, start_server
from tests.support.warm import run_warm
from wsh.wire.system.place import Places


def wsh(*args: str) -> subprocess.CompletedProcess[str]:
    return run_warm([sys.executable, "-m", "wsh.cli.main", *args], text=True, timeout=120)


def test_sessions_can_be_ended_when_no_server_lives(places: Places) -> None:
    server = start_server(places)
    try:
        pids = {}
        for name in ("one", "two"):
            made = server.request("POST", "/sessions", {"name": name, "command": "sleep 1000"})
            assert made.status in (200, 201), made
            pids[name] = made.json["pid"]
    finally:
        server.process.kill()
        server.process.wait()
    killed = wsh("kill", "one")
    assert killed.returncode == 0, killed
    assert not psutil.pid_exists(pids["one"]) and psutil.pid_exists(pids["two"])
    assert len(list(places.sessions.iterdir())) == 1
    missing = wsh("kill", "one")
    assert missing.returncode != 0 and "one" in missing.stderr
    kept = wsh("stop", "--keep", "--json")
    assert json.loads(kept.stdout) == {"stopped": False, "pid": None, "kept": True}
    stopped = wsh("stop", "--json")
    assert json.loads(stopped.stdout) == {"stopped": True, "pid": None, "kept": False}
    assert not psutil.pid_exists(pids["two"])
    assert not places.keeper_socket.exists() and list(places.sessions.iterdir()) == []
    assert "No server runs." in wsh("stop").stdout


def test_doctor_tells_of_a_server_that_native_code_killed(places: Places) -> None:
    with running_server(places) as server:
        os.kill(server.process.pid, 4)
        server.process.wait(60)
        assert "killed by native code" in wsh("doctor").stdout
        with running_server(places):
            told = wsh("doctor", "--json").stdout
            assert "killed the server 1 times in the last day" in told, told
