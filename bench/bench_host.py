"""Sessions on another machine, behind a real sshd on loopback: a key's echo against that of `ssh host cat`."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.host.conftest import Net, open_net
from websockets.sync.client import connect

from bench.row import Row

KEYS = 200


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="wsh-bench-") as folder, open_net(Path(folder), ["near"]) as net:
        made = net.server.request("POST", "/sessions", {"name": "near/bench", "command": "bash --norc", "cols": 120})
        assert made.status == 201, made
        try:
            return [_measure_echo(net)]
        finally:
            net.server.request("DELETE", "/sessions/near%2Fbench")


def _measure_echo(net: Net) -> Row:
    net.server.request("POST", "/sessions/near%2Fbench/input", b"stty -echo -icanon; exec cat\r")
    headers = {"Authorization": f"Bearer {net.server.token}"}
    with connect(f"{net.server.ws_url}/sessions/near%2Fbench/ws/raw", additional_headers=headers) as viewer:
        time.sleep(0.5)
        ours = []
        for number in range(KEYS):
            key = b"%c" % (97 + number % 26)
            began = time.perf_counter()
            viewer.send(key)
            while key not in (viewer.recv(timeout=60) or b""):
                pass
            ours.append(time.perf_counter() - began)
    theirs = []
    with subprocess.Popen(
        [*net.ssh.ssh, "near", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as ssh:
        assert ssh.stdin is not None and ssh.stdout is not None
        for _ in range(KEYS):
            began = time.perf_counter()
            ssh.stdin.write(b"k")
            ssh.stdout.read(1)
            theirs.append(time.perf_counter() - began)
        ssh.stdin.close()
    over_ms = (statistics.median(ours) - statistics.median(theirs)) * 1000
    own_ms = statistics.median(theirs) * 1000
    note = f"the connection's own: {own_ms:.2f} ms"
    return Row("host", "a key's echo beyond the round trip", over_ms, "ms", over_ms, "≤ 3 ms", over_ms <= 3, note=note)
