"""Sessions on another machine, behind a real sshd on loopback: a key's echo and output, both against `ssh host cat`."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tests.host.conftest import Net, open_net
from websockets.sync.client import connect

from bench.row import Row, at_least, at_most, interleave, median

KEYS = 200
SIZE_BYTES = 32 << 20


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="wsh-bench-") as folder, open_net(Path(folder), ["near"]) as net:
        made = net.server.request("POST", "/sessions", {"name": "near/bench", "command": "bash --norc", "cols": 120})
        assert made.status == 201, made
        try:
            return [_measure_echo(net), *_measure_output(net, Path(folder))]
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
    return at_most("host", "a key's echo beyond the round trip", over_ms, 3, "ms", note)


def _measure_output(net: Net, folder: Path) -> list[Row]:
    """Bytes of the file that reach the client of the raw stream, by the time until the last one; what is left out for a slow client counts for nothing.

    `ssh host cat` moves pipes: it has no terminal. `ssh -t host cat` has one, as every session has, with the settings that programs
    find; its client keeps and parses nothing of what it prints. The session here shows what forwarding costs.
    """
    file = folder / "output"
    file.write_bytes(b"".join(b"%079d\n" % number for number in range(SIZE_BYTES // 80)))
    for name in ("near/cat", "cat"):
        body = {"name": name, "command": "bash --norc --noprofile", "cols": 120}
        assert net.server.request("POST", "/sessions", body).status == 201
    headers = {"Authorization": f"Bearer {net.server.token}"}
    shares = []
    printed = SIZE_BYTES + SIZE_BYTES // 80  # a terminal prints a carriage return at each line's end

    def read_raw(name: str) -> float:
        url = f"{net.server.ws_url}/sessions/{quote(name, safe='')}/ws/raw"
        with connect(url, additional_headers=headers, max_size=None, compression=None) as viewer:
            viewer.send(f"echo be''gun; cat {file}; echo en''ded\r".encode())
            seen = b""
            while b"begun" not in seen:
                seen += viewer.recv(timeout=60)  # type: ignore[operator]  # bytes
            last, got, began = seen[seen.index(b"begun") :], 0, time.perf_counter()
            while b"ended" not in last:
                message = viewer.recv(timeout=60)
                assert isinstance(message, bytes)
                got += len(message)
                last = last[-8:] + message
            viewer.send(b"clear\r")
        took_s = time.perf_counter() - began
        shares.append(min(1.0, got / printed))
        return shares[-1] * SIZE_BYTES / 1e6 / took_s

    def read_ssh(*options: str) -> float:
        words = [*net.ssh.ssh, *options, "near", f"cat {file}"]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0
        ) as ssh:
            assert ssh.stdout is not None
            ssh.stdout.read(1)
            began = time.perf_counter()
            while ssh.stdout.read(65536):
                pass
            return SIZE_BYTES / 1e6 / (time.perf_counter() - began)

    peers = {
        "ssh host cat": read_ssh,
        "ssh -t host cat": lambda: read_ssh("-tt"),
        "a session here": lambda: read_raw("cat"),
    }
    found = interleave({"ours": lambda: read_raw("near/cat"), **peers}, 3)
    for name in ("near%2Fcat", "cat"):
        net.server.request("DELETE", f"/sessions/{name}")
    note = f"{100 * median(shares):.0f} % of the output came"
    ours = median(found["ours"])
    return [
        at_least("host", "output of a program", ours, median(found[peer]), "MB/s", peer, 0.7, note=note)
        for peer in peers
    ]
