"""The HTTP and WebSocket door: reading a screen against /health, what subscribers cost a flooding child, and how soon a
new server answers."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading
import time

from tests.support.serving import RunningServer, running_server

from bench.private import private_places
from bench.row import Row, at_most, at_most_ratio, median
from wsh.wire.system.place import Places

ROUNDS = 7
READS = 150
SUBSCRIBERS = 64
FLOOD_BYTES = 60_000_000


PAINTER = """
import sys
for n, _ in enumerate(sys.stdin):
    rows = (f"\\x1b[{r};1H\\x1b[3{(r + n) % 8}m{n:08d} " + "word \\x1b[1mbold\\x1b[22m " * 5 for r in range(1, 24))
    sys.stdout.write("".join(rows))
    sys.stdout.flush()
"""


def run() -> list[Row]:
    with private_places() as places:
        return [*_reads(places), *_subscribers(places), *_starts(places)]


class _Client:
    """One kept-alive connection."""

    def __init__(self, server: RunningServer) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port)
        self._headers = server.auth

    def time(self, method: str, path: str, body: bytes | None = None) -> float:
        """Milliseconds until the whole answer is here."""
        began = time.perf_counter()
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status < 300, answer.status
        return (time.perf_counter() - began) * 1000


def _reads(places: Places) -> list[Row]:
    """Each read finds a screen that changed since the last one: a full one, coloured."""
    with running_server(places) as server:
        painter = places.state.parent / "painter.py"
        painter.write_text(PAINTER)
        made = server.request("POST", "/sessions", {"name": "s", "command": f"{sys.executable} -u {painter}"})
        assert made.status == 201, made
        client = _Client(server)
        times: dict[str, list[float]] = {"health": [], "plain": [], "styled": []}
        paths = {
            "health": "/health",
            "plain": "/sessions/s/screen?format=plain",
            "styled": "/sessions/s/screen?format=styled",
        }
        for _ in range(20):
            client.time("GET", paths["styled"])
        for _ in range(READS):
            for name, path in paths.items():
                client.time("POST", "/sessions/s/input", b"\n")
                client.time("GET", "/sessions/s/idle?timeout_ms=3&fresh=true")
                times[name].append(client.time("GET", path))
    health = median(times["health"])
    return [
        at_most_ratio(
            "http", "GET screen plain, p50, against /health", median(times["plain"]), health, "ms", "/health", 3
        ),
        at_most_ratio(
            "http", "GET screen styled, p50, against /health", median(times["styled"]), health, "ms", "/health", 5
        ),
    ]


def _run_flood(server: RunningServer, name: str) -> float:
    began = time.perf_counter()
    server.request("POST", f"/sessions/{name}/input", b"\n")
    server.request("GET", f"/sessions/{name}/idle?exit=true&max_wait_ms=120000", timeout=130)
    return time.perf_counter() - began


class _Subscribers:
    """Readers in one thread: subscribe to a session's differences and read them away."""

    def __init__(self, server: RunningServer, name: str, count: int) -> None:
        self._sockets = [self._open(server, name) for _ in range(count)]
        self._stop = threading.Event()
        self.received = 0
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _open(self, server: RunningServer, name: str) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(
            (
                f"GET /sessions/{name}/ws/json HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==\r\n"
                f"Authorization: Bearer {server.token}\r\n\r\n"
            ).encode()
        )
        while b"connected" not in sock.recv(65536):
            pass
        body = json.dumps({"id": 1, "method": "subscribe", "params": {"events": ["diffs"]}}).encode()
        sock.sendall(bytes((0x81, 0x80 | len(body), 0, 0, 0, 0)) + body)
        return sock

    def _read(self) -> None:
        import selectors

        with selectors.DefaultSelector() as selector:
            for sock in self._sockets:
                selector.register(sock, selectors.EVENT_READ)
            while not self._stop.is_set():
                # A moment's rest: the readers stand for programs elsewhere and must not eat the core that is measured.
                time.sleep(0.02)
                for key, _ in selector.select(0.1):
                    self.received += len(os.read(key.fd, 1 << 20))

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for sock in self._sockets:
            sock.close()


def _subscribers(places: Places) -> list[Row]:
    alone: list[float] = []
    watched: list[float] = []
    with running_server(places) as server:
        number = 0
        for _ in range(ROUNDS):
            for times, count in ((alone, 0), (watched, SUBSCRIBERS)):
                number += 1
                times.append(run_flood(server, f"flood{number}", count))
    title = f"a flood of coloured text with {SUBSCRIBERS} ws/json subscribers, against none"
    return [at_most_ratio("http", title, median(watched), median(alone), "s", "none", 1.10)]


def run_flood(server: RunningServer, name: str, subscribers: int) -> float:
    """Seconds that a flood takes in a session of its own."""
    line = "\\033[31mred \\033[1;32mgreen and bold \\033[0mplain text that fills the line to its end\\n"
    command = f'sh -c "read go; yes \\"$(printf \'{line}\')\\" | head -c {FLOOD_BYTES}; exit 0"'
    assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201
    readers = _Subscribers(server, name, subscribers)
    try:
        took = _run_flood(server, name)
    finally:
        readers.close()
    assert not subscribers or readers.received > 3_000 * subscribers, readers.received
    server.request("DELETE", f"/sessions/{name}")
    return took


def _starts(places: Places) -> list[Row]:
    """From the start of the process to the first answer, as a client sees it."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with running_server(places):
            times.append(time.perf_counter() - began)
    return [at_most("http", "a new server's first answer", median(times), 1.5, "s")]
