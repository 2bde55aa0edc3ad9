"""The terminal by itself: parsing without a pty against pyte, reading, storing, and memory."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyte

from bench.corpus import KINDS, write_corpus
from bench.row import Row, at_least, at_most, interleave, median
from wsh.terminal import Terminal

ROUNDS = 5
SIZE = 8 << 20
PYTE_SIZE = 64 << 10


def run() -> list[Row]:
    return _feeds() + _reads() + _whole() + _memory()


def _feeds() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        files = write_corpus(Path(temporary), SIZE)
        for kind in KINDS:
            data = files[kind].read_bytes().replace(b"\n", b"\r\n")
            speeds = interleave(
                {"wsh": lambda data=data: _speed(data), "pyte": lambda data=data: _pyte_speed(data[:PYTE_SIZE])},  # type: ignore[misc]
                ROUNDS,
            )
            ours, theirs = median(speeds["wsh"]), median(speeds["pyte"])
            rows.append(at_least("terminal", f"parsing {kind} text, no pty", ours, theirs, "MB/s", "pyte", 20))
    return rows


def _speed(data: bytes) -> float:
    with Terminal(24, 80) as terminal:
        terminal.feed(data[: len(data) // 4])
        started = time.perf_counter()
        terminal.feed(data)
        return len(data) / (time.perf_counter() - started) / 1e6


def _pyte_speed(data: bytes) -> float:
    stream = pyte.ByteStream(pyte.Screen(80, 24))
    started = time.perf_counter()
    stream.feed(data)
    return len(data) / (time.perf_counter() - started) / 1e6


def _median_ms(work: Callable[[int], object], before: Callable[[int], object], count: int) -> float:
    times = []
    for number in range(count):
        before(number)
        started = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - started)
    return median(times) * 1000


def _reads() -> list[Row]:
    rows = []
    chance = random.Random(1)
    busy = [
        b"\x1b[H"
        + b"".join(b"\x1b[38;5;%dm%03d \x1b[0m" % (chance.randrange(256), chance.randrange(999)) for _ in range(480))
        for _ in range(20)
    ]
    with Terminal(24, 80) as terminal:
        terminal.feed(b"".join(b"line %d \x1b[3%dmcolour\x1b[0m\r\n" % (n, n % 8) for n in range(12_000)))

        def line(number: int) -> None:
            terminal.feed(b"line %d \x1b[3%dmcolour\x1b[0m and more\r\n" % (number, number % 8))

        def paint(number: int) -> None:
            terminal.feed(busy[number % len(busy)])

        full = "full scrollback"
        for title, before in ((f"one line more, {full}", line), (f"480 colours repainted, {full}", paint)):
            for styled in (True, False):
                value = _median_ms(lambda _, styled=styled: terminal.screen(styled), before, 300)  # type: ignore[misc]
                kind = "styled" if styled else "plain"
                rows.append(at_most("terminal", f"{kind} 80×24 screen, {title}", value, 0.5, "ms"))
        value = _median_ms(lambda _: terminal.scrollback(limit=100, styled=True), line, 50)
        rows.append(at_most("terminal", f"100 styled lines, {full}", value, 5, "ms"))
    return rows


def _whole() -> list[Row]:
    with Terminal(24, 80) as terminal:
        terminal.feed(b"".join(b"line %d \x1b[3%dmcolour\x1b[0m and text\r\n" % (n, n % 8) for n in range(12_000)))

        def nothing(_: int) -> None:
            pass

        stored = terminal.snapshot()
        return [
            at_most(
                "terminal", "snapshot, full scrollback", _median_ms(lambda _: terminal.snapshot(), nothing, 9), 20, "ms"
            ),
            at_most(
                "terminal", "restore", _median_ms(lambda _: Terminal.restore(stored).close(), nothing, 9), 40, "ms"
            ),
            at_most(
                "terminal", "replay with 1,000 lines", _median_ms(lambda _: terminal.replay(1000), nothing, 9), 50, "ms"
            ),
            at_most(
                "terminal",
                "search, full scrollback",
                _median_ms(lambda _: terminal.search("zz"), nothing, 5),
                100,
                "ms",
            ),
        ]


_MEASURE = """
import bench.bench_terminal as b
b.measure_memory()
"""


def measure_memory() -> None:
    """In a fresh process: KiB of an idle terminal, of a full one, and of a full one at rest."""
    prompt = b"\x1b]2;x\x07\x1b[?2004h\x1b[1;32muser@host\x1b[0m:\x1b[34m~\x1b[0m$ "
    Terminal().screen()
    gc.collect()
    before = _pss_kib()
    many = [Terminal() for _ in range(1000)]
    for terminal in many:
        terminal.feed(prompt)
        terminal.screen(True)
    idle = (_pss_kib() - before) / 1000
    before = _pss_kib()
    terminal = Terminal()
    for number in range(12_000):
        terminal.feed(b"x" * 70 + b"%d\r\n" % number)
    full = _pss_kib() - before
    terminal.compress()
    packed = _pss_kib() - before
    print(idle, full, packed)


def _pss_kib() -> int:
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1])


def _memory() -> list[Row]:
    out = subprocess.run([sys.executable, "-c", _MEASURE], check=True, capture_output=True, text=True).stdout
    idle, full, packed = (float(part) for part in out.split())
    return [
        at_most("terminal", "memory of an idle terminal (of 1,000)", idle / 1024, 0.2, "MB"),
        at_most("terminal", "memory of 10,000 lines", full / 1024, 8, "MB"),
        at_most("terminal", "the same at rest, packed", packed / 1024, 2, "MB"),
    ]
