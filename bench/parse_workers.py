"""Would parsing in worker processes be better? `python -m bench.parse_workers` prints both ways side by side.

A prototype of the other design, to decide by figures: one worker per core holds the terminals, maps the same rings and
parses what it is told to; screens come back as bytes. What the server does today is measured in the same run, and each
figure is the best of several turns, since the machine may be busy with other things.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.corpus import write_corpus
from wsh.terminal import Terminal, buffer_of

SLICE = 64 * 1024
RING = 1 << 20
CORES = os.cpu_count() or 1


class Worker:
    """A process with terminals. Messages: a pickled tuple each way, length before it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.pid = os.fork()
        if not self.pid:
            ours.close()
            try:
                _serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self.sock = ours

    def ask(self, *message: Any) -> Any:
        self.sock.sendall(pickle.dumps(message, 5))
        return pickle.loads(self.sock.recv(1 << 20))

    def map(self, number: int, fd: int) -> None:
        socket.send_fds(self.sock, [pickle.dumps(("map", number), 5)], [fd])
        self.sock.recv(100)

    def close(self) -> None:
        self.ask("end")
        self.sock.close()
        os.waitpid(self.pid, 0)


def _serve(sock: socket.socket) -> None:
    terminals: dict[int, Terminal] = {}
    rings: dict[int, Any] = {}
    while True:
        raw, fds, _, _ = socket.recv_fds(sock, 1 << 20, 1)
        message = pickle.loads(raw)
        answer: Any = None
        match message[0]:
            case "map":
                shared = mmap.mmap(fds[0], RING)
                rings[message[1]] = buffer_of(shared)
                terminals.setdefault(message[1], Terminal())
            case "open":
                terminals[message[1]] = Terminal(message[2], message[3])
            case "feed":
                terminal = terminals[message[1]]
                terminal.feed_range(rings[message[1]], message[2], message[3])
                answer = (terminal.take_replies(), terminal.take_events())
            case "type":
                terminals[message[1]].feed(message[2])
            case "screen":
                answer = terminals[message[1]].screen(True)
            case "end":
                sock.sendall(pickle.dumps(None, 5))
                return
            case "memory":
                answer = _own_kib(os.getpid())
        sock.sendall(pickle.dumps(answer, 5))


def _own_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_Dirty"))


def _best(work: Callable[[], float], turns: int = 5) -> float:
    return min(work() for _ in range(turns))


def _rings(data: bytes) -> tuple[int, Any]:
    fd = os.memfd_create("bench-ring")
    os.ftruncate(fd, RING)
    shared = mmap.mmap(fd, RING)
    shared[: len(data)] = data
    return fd, buffer_of(shared)


def throughput(data: bytes) -> tuple[float, float]:
    data = data[:RING]
    fd, ring = _rings(data)
    spans = [(at, min(SLICE, len(data) - at)) for at in range(0, len(data), SLICE)]
    here = Terminal()

    def today() -> float:
        started = time.perf_counter()
        for at, size in spans:
            here.feed_range(ring, at, size)
            here.take_replies(), here.take_events()
        return time.perf_counter() - started

    worker = Worker()
    worker.map(0, fd)

    def there() -> float:
        started = time.perf_counter()
        for at, size in spans:
            worker.ask("feed", 0, at, size)
        return time.perf_counter() - started

    figures = len(data) / _best(today) / 1e6, len(data) / _best(there) / 1e6
    worker.close()
    here.close()
    return figures


def screen_read(data: bytes) -> tuple[float, float]:
    """Microseconds for a styled screen after a line of output."""
    here = Terminal()
    here.feed(data[: 1 << 16])
    worker = Worker()
    worker.ask("open", 0, 24, 80)
    worker.ask("type", 0, data[: 1 << 16])

    def timed(type_line: Callable[[], object], read: Callable[[], object]) -> float:
        took = []
        for _ in range(100):
            type_line()
            started = time.perf_counter()
            read()
            took.append(time.perf_counter() - started)
        return statistics.median(took) * 1e6

    today = _best(lambda: timed(lambda: here.feed(b"\r\nnext line"), lambda: here.screen(True)))
    there = _best(lambda: timed(lambda: worker.ask("type", 0, b"\r\nnext line"), lambda: worker.ask("screen", 0)))
    worker.close()
    return today, there


def idle_memory(count: int = 300) -> tuple[float, float]:
    """KiB of private memory for each of `count` idle terminals, with what the workers themselves take."""
    gc.collect()
    before = _own_kib(os.getpid())
    many = [Terminal() for _ in range(count)]
    for terminal in many:
        terminal.feed(b"$ ")
    today = (_own_kib(os.getpid()) - before) / count
    for terminal in many:
        terminal.close()
    workers = [Worker() for _ in range(CORES)]
    for number in range(count):
        workers[number % CORES].ask("open", number, 24, 80)
        workers[number % CORES].ask("type", number, b"$ ")
    there = sum(worker.ask("memory") for worker in workers) / count
    for worker in workers:
        worker.close()
    return today, there


def echo(data: bytes, seconds: float = 3.0) -> tuple[float, float]:
    """Milliseconds (95 of 100) until a typed character is on a screen that was read, beside eight floods."""
    data = data[:RING]
    fd, ring = _rings(data)
    chance = random.Random(7)
    slice_bytes = 8 * 1024

    def today() -> float:
        floods, small = [Terminal() for _ in range(8)], Terminal()
        took, at, end = [], 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            asked = time.perf_counter() - chance.uniform(0, 0.0015)  # it comes at any time of a turn
            turn = time.perf_counter() + 0.0015
            while time.perf_counter() < turn:
                floods[at % 8].feed_range(ring, at * slice_bytes % (len(data) - slice_bytes), slice_bytes)
                at += 1
            small.feed(b"x")
            small.screen(True)
            took.append(time.perf_counter() - asked)
        return sorted(took)[int(len(took) * 0.95)] * 1e3

    def there() -> float:
        workers = [Worker() for _ in range(CORES)]
        for number in range(8):
            workers[number % CORES].map(number, fd)
        workers[0].ask("open", 99, 24, 80)
        took, at, end = [], 0, time.perf_counter() + seconds
        for worker in workers:
            worker.sock.sendall(pickle.dumps(("feed", workers.index(worker), 0, slice_bytes), 5))
        while time.perf_counter() < end:
            asked = time.perf_counter()
            for index, worker in enumerate(workers):
                worker.sock.recv(1 << 20)
                at += 1
                flood = (at * CORES + index) % 8 // CORES * CORES + index
                message = ("feed", flood, at * slice_bytes % (len(data) - slice_bytes), slice_bytes)
                if index == 0:
                    worker.ask("type", 99, b"x")
                    worker.ask("screen", 99)
                    took.append(time.perf_counter() - asked)
                worker.sock.sendall(pickle.dumps(message, 5))
        for worker in workers:
            worker.sock.recv(1 << 20)
            worker.close()
        return sorted(took)[int(len(took) * 0.95)] * 1e3

    return _best(today, 3), _best(there, 3)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        texts = {kind: path.read_bytes() for kind, path in write_corpus(Path(folder), RING).items()}
    print(f"{'':34}{'in the server':>14}{'in workers':>14}{'ratio':>8}")

    def tell(name: str, figures: tuple[float, float], unit: str) -> None:
        today, there = figures
        print(f"{name:34}{today:14.1f}{there:14.1f}{there / today:8.2f}  {unit}", flush=True)

    for kind, data in texts.items():
        tell(f"throughput, {kind}", throughput(data), "MB/s")
    tell("styled screen after a line", screen_read(texts["coloured"]), "µs")
    tell("idle session of 300", idle_memory(), "KiB")
    tell("echo beside eight floods, 95 %", echo(texts["coloured"]), "ms")


if __name__ == "__main__":
    main()
