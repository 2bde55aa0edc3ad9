"""A machine whose sshd forbids forwarding: `wsh relay` carries the same over stdio."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.host.conftest import open_net
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.accept


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
