"""Cuts: nothing that was printed is lost or doubled, no call is made twice, viewers and waits go on where they were."""

from __future__ import annotations

import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.host.conftest import Net, open_net
from tests.support.serving import Reply, running_server
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.accept


def _cut(net: Net, name: str) -> None:
    """Cut the connection, and wait until the server here has another."""
    since = net.host(name)["since"]
    assert net.ssh.machines[name].cut()
    wait_until(lambda: (now := net.host(name))["online"] and now["since"] > since, "the next connection")


def _open(net: Net, address: str) -> str:
    made = net.server.request("POST", "/sessions", {"name": address, "command": "bash --norc", "cols": 120})
    assert made.status == 201, made
    return "/sessions/" + address.replace("/", "%2F")


def test_a_run_gets_its_answer_over_the_next_connection_and_is_typed_once(net: Net) -> None:
    path = _open(net, "near/run")
    command = "echo began >> $HOME/ran; sleep 1; (exit 7)"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(net.server.request, "POST", f"{path}/run", {"input": command, "format": "plain"})
        mark = net.ssh.machines["near"].folder / "home" / "ran"
        wait_until(mark.exists, "the command")
        _cut(net, "near")
        answer = running.result(HANG_S)
    assert answer.status == 200 and answer.json["exit_code"] == 7, answer
    assert mark.read_text() == "began\n"
    assert net.server.request("DELETE", path).status == 204


def test_a_wait_goes_on_through_a_cut(net: Net) -> None:
    path = _open(net, "near/wait")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(net.server.request, "GET", f"{path}/idle?text=word-42&max_wait_ms=60000")
        _cut(net, "near")
        net.server.request("POST", f"{path}/input", b"echo word-$((6*7))\r")
        assert waiting.result(HANG_S).json["ended_by"] == "text"
    assert net.server.request("DELETE", path).status == 204


def test_a_viewer_stays_and_gets_a_whole_picture_after_a_cut(net: Net) -> None:
    path = _open(net, "near/view")
    headers = {"Authorization": f"Bearer {net.server.token}"}
    with connect(f"{net.server.ws_url}{path}/ws/view?rows=24&cols=120", additional_headers=headers) as viewer:

        def read_until(pattern: bytes | str) -> None:
            seen = b""
            while True:
                message = viewer.recv(timeout=HANG_S)
                if isinstance(message, str) and isinstance(pattern, str) and pattern in message:
                    return
                if isinstance(message, bytes):
                    seen += message
                    if isinstance(pattern, bytes) and re.search(pattern, seen):
                        return

        viewer.send(b"echo before-$((1+1))\r")
        read_until(rb"before-2")
        net.ssh.machines["near"].cut()
        read_until('"online": false')
        read_until('"online": true')
        read_until(rb"before-2")
        viewer.send(b"echo after-$((1+1))\r")
        read_until(rb"after-2")
    assert net.server.request("DELETE", path).status == 204


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_cuts_under_numbered_output_lose_and_double_nothing(net: Net, torture: bool) -> None:
    """Under torture a thousand."""
    cuts = 1000 if torture else 3
    path = _open(net, "near/count")
    program = "i=0; while [ ! -e $HOME/enough ]; do i=$((i+1)); echo n$i; sleep 0.02; done; (exit 3)"
    (net.ssh.machines["near"].folder / "home" / "enough").unlink(missing_ok=True)
    net.server.request("POST", f"{path}/input", program.encode() + b"\r")
    wait_until(lambda: "n3" in json.dumps(net.server.get(f"{path}/screen?format=plain")), "the first numbers")
    for _ in range(cuts):
        _cut(net, "near")
    (net.ssh.machines["near"].folder / "home" / "enough").touch()
    wait_until(lambda: net.server.get(f"{path}/commands")[-1]["exit_code"] is not None, "the program's end")
    command = net.server.get(f"{path}/commands")[-1]
    assert command["exit_code"] == 3
    printed: list[str] = []
    while True:
        page = net.server.get(f"{path}/commands/{command['id']}/output?offset={len(printed)}&limit=5000")
        if not page["lines"]:
            break
        printed += page["lines"]
    assert printed == [f"n{number + 1}" for number in range(len(printed))]
    assert net.server.request("DELETE", path).status == 204


def test_a_host_that_is_away_is_told_with_since_when_and_comes_back(net: Net) -> None:
    path = _open(net, "near/away")
    net.server.get("/sessions")
    machine = net.ssh.machines["near"]
    machine.stop()
    try:
        wait_until(lambda: not net.host("near")["online"], "the host to be offline")
        replies: list[Reply] = []

        def is_refused() -> bool:
            replies.append(net.server.request("POST", f"{path}/run", {"input": "true"}))
            return replies[-1].status == 503

        wait_until(is_refused, "a refusal")
        refused = replies[-1]
        assert refused.code == "host_unreachable"
        details = refused.json["error"]["details"]
        assert details["host"] == "near" and details["since"] and details["made"] == "no"
        kept = next(one for one in net.server.get("/sessions") if one["name"] == "near/away")
        assert kept["unreachable_since"] == pytest.approx(net.host("near")["since"])
        assert net.host("near")["last_seen"]
    finally:
        machine.start()
    net.wait_until_online("near")
    assert net.server.get(path)["unreachable_since"] is None
    assert net.server.request("DELETE", path).status == 204


def test_the_next_server_tells_of_a_host_that_is_away_when_it_begins(tmp_path: Path) -> None:
    with open_net(tmp_path, ["near"], started=True) as net:
        path = _open(net, "near/away")
        net.server.get("/sessions")
        machine = net.ssh.machines["near"]
        net.server.stop(signal.SIGINT)
        machine.stop()
        with running_server(net.server.places) as server:
            again = Net(server, net.ssh)
            kept = next(one for one in server.get("/sessions") if one["name"] == "near/away")
            host = again.host("near")
            assert not host["online"] and host["last_seen"] and host["version"]
            assert kept["unreachable_since"] == pytest.approx(host["since"])
            machine.start()
            again.wait_until_online("near")
            assert server.get(path)["unreachable_since"] is None
            assert server.request("DELETE", path).status == 204
