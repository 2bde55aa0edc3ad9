"""Viewers: what a frame costs, what viewers cost a flooding child, and how soon a key's echo is seen."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import uvloop

from bench.command_line import start_wsh_server
from bench.corpus import write_corpus
from bench.row import Row, at_least, at_most, at_most_ratio, median, percentile
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.visual.picture.compositor import Picture
from wsh.visual.picture.painter import Painter, ViewShape
from wsh.visual.stage import Stage
from wsh.visual.viewer.viewers import Viewers
from wsh.wire.model.element import OverlayCreate, PanelCreate
from wsh.wire.setting import load
from wsh.wire.system.place import find_places

Result = TypeVar("Result")
FLOOD_BYTES = 24 << 20


def run() -> list[Row]:
    return [*_frames(), *_costs(), *_echoes()]


def _with_registry(work: Callable[[SessionRegistry], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        with tempfile.TemporaryDirectory() as home:
            registry = await SessionRegistry.open(find_places({"HOME": home, "XDG_RUNTIME_DIR": home}), load(None, {}))
            try:
                return await work(registry)
            finally:
                await registry.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _frames() -> list[Row]:
    async def work(registry: SessionRegistry) -> list[Row]:
        session = await registry.open_session(SessionSpec(command="sleep 1000"))
        stage = Stage(session)
        for n in range(10):
            spans = [{"text": f"overlay {n}\nsecond line", "fg": "red"}]
            body = {"x": n * 7, "y": n * 2, "width": 16, "height": 3, "spans": spans, "background": "blue"}
            stage.overlays.create(OverlayCreate.model_validate(body))
        for position in ("top", "bottom"):
            body = {"position": position, "height": 1, "spans": [{"text": "a panel"}]}
            stage.panels.create(PanelCreate.model_validate(body))
        painter = Painter(session.terminal, stage, Picture(session.terminal, stage), ViewShape(24, 80), 1000)
        painter.full()
        times = []
        for n in range(400):
            for row in range(1, 23):
                session.terminal.feed(b"\x1b[%d;1H\x1b[3%dmrow %d of frame %d\x1b[0m" % (row, n % 8, row, n))
            started = time.perf_counter()
            painter.change()
            times.append((time.perf_counter() - started) * 1000)
        title = "frame of 80×24 with 10 overlays and 2 panels, every row changed"
        return [at_most("viewer", title, median(times), 2, "ms", "p50")]

    return _with_registry(work)


class _Reader:
    """A viewer that takes everything at once."""

    def is_busy(self) -> bool:
        return False

    def send(self, data: bytes) -> None:
        pass

    def tell(self, message: dict[str, object]) -> None:
        pass

    def dismiss(self, reason: str) -> None:
        pass


async def _flood(registry: SessionRegistry, file: Path, viewers: int) -> float:
    session = await registry.open_session(SessionSpec(command=f"sleep 0.3; cat {file}"))
    looking = Viewers(session, Stage(session))
    seen = [looking.attach(_Reader(), 24, 80) for _ in range(viewers)]
    started = await _first_output(session)
    await session.wait(WaitSpec(exit=True, max_wait_ms=120_000))
    took = time.perf_counter() - started
    for viewer in seen:
        looking.detach(viewer)
    await registry.destroy(session)
    return session.generation / took / 1e6


async def _first_output(session: Session) -> float:
    if not session.generation:
        printed = asyncio.Event()
        stop = session.output.tap(lambda _offset, _data: printed.set())
        await printed.wait()
        stop()
    return time.perf_counter()


def _costs() -> list[Row]:
    async def work(registry: SessionRegistry) -> dict[int, list[float]]:
        speeds: dict[int, list[float]] = {0: [], 1: [], 64: []}
        with tempfile.TemporaryDirectory() as temporary:
            file = write_corpus(Path(temporary), FLOOD_BYTES)["coloured"]
            for _ in range(7):
                for count, found in speeds.items():
                    found.append(await _flood(registry, file, count))
        return speeds

    measured = _with_registry(work)
    # Compared within each round: the machine's own mood changes from one to the next by more than is looked for.
    speeds = {
        count: median(measured[0]) * median([a / b for a, b in zip(found, measured[0], strict=True)])
        for count, found in measured.items()
    }
    return [
        at_least("viewer", "a flood with one viewer", speeds[1], speeds[0], "MB/s", "nobody looking", 0.95),
        at_least(
            "viewer", "a flood with 64 viewers of one size", speeds[64], speeds[0], "MB/s", "nobody looking", 0.90
        ),
    ]


def _echo_times(argv: list[str], environ: dict[str, str], count: int = 200) -> list[float]:
    """Milliseconds from typing a key in a terminal until its echo is drawn there."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, environ)
    times = []
    try:
        _drain(fd, 2.5)
        for n in range(count):
            key = b"%c" % (97 + n % 26)
            started = time.perf_counter()
            os.write(fd, key)
            got = b""
            while key not in got:
                if not select.select([fd], [], [], 5)[0]:
                    raise AssertionError("no echo")
                got += os.read(fd, 65536)
            times.append((time.perf_counter() - started) * 1000)
            _drain(fd, 0.012)
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)
        os.close(fd)
    return times


def _drain(fd: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            os.read(fd, 65536)


def _echoes() -> list[Row]:
    wsh = [sys.executable, "-m", "wsh.cli.main"]
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home, "TERM": "xterm-256color"}
        tmux = ["tmux", "-S", f"{home}/socket", "-f", "/dev/null"]
        subprocess.run([*tmux, "new-session", "-d", "-s", "echo", "cat"], env=environ, check=True)
        ours: list[float] = []
        theirs: list[float] = []
        try:
            with start_wsh_server(environ):
                subprocess.run([*wsh, "new", "--name", "echo", "cat"], env=environ, check=True, capture_output=True)
                for _ in range(3):
                    ours += _echo_times([*wsh, "attach", "echo"], environ)
                    theirs += _echo_times([*tmux, "attach", "-t", "echo"], environ)
        finally:
            subprocess.run([*tmux, "kill-server"], env=environ, check=False, capture_output=True)
    p99, peer = percentile(ours, 0.99), percentile(theirs, 0.99)
    return [
        at_most("viewer", "echo of a key in wsh attach", p99, 2, "ms", f"p99; p50 {median(ours):.2f} ms"),
        at_most_ratio(
            "viewer", "echo of a key, p50", median(ours), median(theirs), "ms", f"tmux (p99 {peer:.1f})", 2.5
        ),
    ]
