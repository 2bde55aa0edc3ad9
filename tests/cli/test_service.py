"""`wsh service`: units that systemd takes, and a server that is started by the first connection to its sockets."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]
HARDENING = ("NoNewPrivileges", "Protect", "Private", "Restrict")


def _need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian package systemd)")
    return found


def _install(*words: str) -> list[Path]:
    done = subprocess.run(
        [*WSH, "service", "install", "--no-start", "--json", *words], capture_output=True, text=True, check=True
    )
    return [Path(path) for path in json.loads(done.stdout)["units"]]


def test_systemd_finds_nothing_wrong_with_the_units(places: Places, tmp_path: Path) -> None:
    analyze = _need("systemd-analyze")
    units = _install("--name", "second", "--bind", "127.0.0.1:8099")
    assert [path.name for path in units] == ["wsh-second.service", "wsh-second.socket"]
    assert units[0].parent == tmp_path / "config" / "systemd" / "user"
    for unit in units:
        done = subprocess.run([analyze, "verify", "--user", "--man=no", str(unit)], capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if str(unit.parent) in line or unit.name in line]
        assert (done.returncode, said) == (0, []), done.stderr
    text = units[0].read_text()
    assert "KillMode=process" in text and not any(word in text for word in HARDENING)


def test_units_of_another_installation_are_told_as_stale(places: Places) -> None:
    service, _ = _install()
    asked = [*WSH, "service", "status", "--json"]
    assert not json.loads(subprocess.run(asked, capture_output=True, check=False).stdout)["stale"]
    service.write_text(service.read_text().replace("ExecStart=", "ExecStart=/elsewhere"))
    done = subprocess.run(asked, capture_output=True, check=False)
    assert done.returncode == 1 and json.loads(done.stdout)["stale"]
    removed = subprocess.run([*WSH, "service", "remove", "--json"], capture_output=True, check=True)
    assert len(json.loads(removed.stdout)["removed"]) == 2 and not service.exists()


def test_the_first_connection_starts_the_server_and_its_end_leaves_the_sockets(places: Places) -> None:
    activate = _need("systemd-socket-activate")
    places.runtime.mkdir(mode=0o700)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listening = [activate, "-l", str(places.socket), "-l", f"127.0.0.1:{port}", f"--setenv=HOME={os.environ['HOME']}"]
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH"):
        listening.append(f"--setenv={name}={os.environ[name]}")
    with subprocess.Popen(
        [*listening, *WSH, "server"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(places.socket.exists, what="the socket of the service manager")
        os.chmod(places.socket, 0o600)
        assert not places.runtime_info.exists(), "nothing runs before somebody connects"
        made = subprocess.run([*WSH, "new", "--name", "first", "cat"], capture_output=True, text=True, check=False)
        assert (made.returncode, made.stdout) == (0, "first\n"), made.stderr
        told = json.loads(places.runtime_info.read_text())
        assert (told["port"], told["pid"]) == (port, process.pid)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()
        stopped = subprocess.run([*WSH, "stop", "--json"], capture_output=True, text=True, check=False)
        assert json.loads(stopped.stdout)["stopped"], stopped
        assert process.wait(60) == 0
    assert places.socket.exists(), "a service manager goes on listening there"
