"""A host's server dies, or its connection is half open: both are noticed, and sessions go on."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.host.conftest import Net, open_net
from tests.process.test_upgrade import play_its_server, start_old_keeper
from tests.support.serving import find_processes
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.accept


def _open(net: Net, name: str) -> str:
    made = net.server.request("POST", "/sessions", {"name": name, "command": "bash --norc --noprofile"})
    assert made.status == 201, made
    return "/sessions/" + name.replace("/", "%2F")


def test_a_killed_far_server_is_started_again_and_its_sessions_go_on(net: Net) -> None:
    path = _open(net, "near/kept")
    ran = net.server.request("POST", f"{path}/run", {"input": "word=before; echo $$", "format": "plain"}).json
    machine = net.ssh.machines["near"]
    began = machine.folder / "home" / "began"
    with ThreadPoolExecutor(1) as pool:
        body = {"input": "touch $HOME/began; read x; echo $x", "max_wait_ms": 60_000, "format": "plain"}
        running = pool.submit(net.server.request, "POST", f"{path}/run", body)
        wait_until(began.exists, "the command")
        os.kill(json.loads(machine.places.runtime_info.read_text())["pid"], signal.SIGKILL)
        answer = running.result(HANG_S)
    # Nobody can say any more what came of it; the command itself goes on.
    assert answer.code == "host_unreachable" and answer.json["error"]["details"]["made"] == "unknown", answer
    net.wait_until_online("near")
    assert net.server.request("POST", f"{path}/input", b"goes-on\r").status == 204
    again = net.server.request("POST", f"{path}/run", {"input": "echo $$ $word", "format": "plain"}).json
    assert again["output"].split() == [*ran["output"].split(), "before"], (ran, again)
    assert "goes-on" in json.dumps(net.server.get(f"{path}/scrollback?format=plain"))
    assert net.server.request("DELETE", path).status == 204


def test_a_half_open_connection_is_noticed_and_made_anew(tmp_path: Path) -> None:
    with open_net(tmp_path, ["near"], settings="silent_s = 3.0\n") as net:
        path = _open(net, "near/quiet")
        since = net.host("near")["since"]
        stopped = net.ssh.machines["near"].list_connections()
        for process in stopped:
            process.suspend()  # the connection stays, and nobody answers on it
        try:
            wait_until(lambda: net.host("near")["since"] > since, "the silence to be noticed")
        finally:
            for process in stopped:
                process.kill()
        net.wait_until_online("near")
        ran = net.server.request("POST", f"{path}/run", {"input": "echo $((6*7))", "format": "plain"}).json
        assert ran["output"].strip() == "42"
        assert net.server.request("DELETE", path).status == 204


def _find_keeper(net: Net) -> str:
    """The command line of the keeper there."""
    words = [" ".join(one.cmdline()) for one in find_processes(net.ssh.machines["near"].places)]
    return next((one for one in words if "keeper/main.py" in one), "")


def test_a_far_session_goes_on_with_the_keeper_of_an_older_version(tmp_path: Path) -> None:
    environ = play_its_server(tmp_path / "older")
    with open_net(tmp_path, ["near"], environ=environ, add=False) as net:
        machine = net.ssh.machines["near"]
        start_old_keeper(machine.places, tmp_path)
        machine.start_server()
        net.server.request("PUT", "/hosts/near", {})
        net.wait_until_online("near")
        path = _open(net, "near/old")
        first = net.server.request("POST", f"{path}/run", {"input": "word=kept; echo $$", "format": "plain"}).json
        # The next server is one of this version, the keeper is not.
        Path(environ["PYTHONPATH"], "sitecustomize.py").write_text("\nLATE = True\n")
        since = net.host("near")["since"]
        os.kill(json.loads(machine.places.runtime_info.read_text())["pid"], signal.SIGKILL)
        wait_until(lambda: (now := net.host("near"))["online"] and now["since"] > since, "the next server")
        again = net.server.request("POST", f"{path}/run", {"input": "echo $$ $word", "format": "plain"}).json
        assert again["output"].split() == [*first["output"].split(), "kept"], (first, again)
        assert str(tmp_path / "old") in _find_keeper(net)
        assert net.server.request("DELETE", path).status == 204
