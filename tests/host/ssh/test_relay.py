"""A machine whose sshd forbids forwarding: `wsh relay` carries the same over stdio."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.host.conftest import open_net
from tests.support.waiting import HANG_S
from wsh.cli.relay import _pump

_MANY = 8_000_000


def test_what_comes_up_waits_for_nothing_that_goes_down(tmp_path: Path) -> None:
    """The server reads only as much as it may write, so both directions fill up at the same time."""

    def serve() -> int:
        server, _ = listener.accept()
        with server:
            server.settimeout(HANG_S)
            server.sendall(b"d" * _MANY)
            return _count(server)

    def bring_up() -> None:
        ours.sendall(b"u" * _MANY)
        ours.shutdown(socket.SHUT_WR)

    def _count(sock: socket.socket) -> int:
        count = 0
        while data := sock.recv(1 << 16):
            count += len(data)
        return count

    path = str(tmp_path / "s")
    ours, theirs = socket.socketpair()
    ours.settimeout(HANG_S)
    with socket.socket(socket.AF_UNIX) as listener, ours, theirs, ThreadPoolExecutor(4) as pool:
        listener.bind(path)
        listener.listen()
        server = pool.submit(serve)
        relay = pool.submit(_pump, path, theirs.fileno(), theirs.fileno())
        sending = pool.submit(bring_up)
        came = 0
        while came < _MANY:
            came += len(ours.recv(1 << 16))
        sending.result(HANG_S)
        assert (came, server.result(HANG_S), relay.result(HANG_S)) == (_MANY, _MANY, 0)


@pytest.mark.accept
def test_calls_and_viewers_go_through_stdio_where_forwarding_is_forbidden(tmp_path: Path) -> None:
    with open_net(tmp_path, ["strict"], options=["AllowStreamLocalForwarding no", "AllowTcpForwarding no"]) as net:
        body = {"name": "strict/job", "command": "bash --norc"}
        assert net.server.request("POST", "/sessions", body).status == 201
        ran = net.server.request("POST", "/sessions/strict%2Fjob/run", {"input": "echo $((6*7))", "format": "plain"})
        assert "42" in json.dumps(ran.json["screen"])
        headers = {"Authorization": f"Bearer {net.server.token}"}
        with connect(f"{net.server.ws_url}/sessions/strict%2Fjob/ws/view", additional_headers=headers) as viewer:
            viewer.send(b"echo seen-$((1+1))\r")
            seen = b""
            while b"seen-2" not in seen:
                message = viewer.recv(timeout=HANG_S)
                seen += message if isinstance(message, bytes) else b""
        machine = net.ssh.machines["strict"]
        assert machine.cut()
        net.wait_until_online("strict")
        assert net.server.request("DELETE", "/sessions/strict%2Fjob").status == 204
