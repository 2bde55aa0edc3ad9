"""The window on a virtual screen: how soon it is there, how smooth it stays, how much memory it takes.

With 50 requests waiting and 20 terminals open, the last one prints without end and is looked at.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import psutil
from tests.desktop.stage import Asking, Desk, desk, execute, virtual_screen, wait_until
from tests.serving import running_server

from bench.row import Row, at_most, median, percentile
from wsh.wire.place import Places, find_places

REQUESTS, TERMINALS, FLOOD_S = 50, 20, 8.0


def run() -> list[Row]:
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as temporary, virtual_screen() as display:
        root = Path(temporary)
        for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            (root / variable).mkdir(mode=0o700)
            os.environ[variable] = str(root / variable)
        try:
            places = find_places()
            start_s = median([_start(places, display) for _ in range(3)])
            spans, memory, count = _flood(places, display, root / "frames")
        finally:
            os.environ.clear()
            os.environ.update(before)
    note = f"{REQUESTS} requests, {TERMINALS} terminals, one flooding"
    return [
        at_most("window", "start until it is shown", start_s, 2.0, "s"),
        at_most("window", "time between frames, p99", percentile(spans, 0.99) * 1000, 33.0, "ms", note),
        at_most("window", "time between frames, median", median(spans) * 1000, 33.0, "ms", f"{count} frames"),
        at_most("window", "resident memory", memory / 2**20, 300.0, "MB", note),
    ]


def _start(places: Places, display: str) -> float:
    started = time.monotonic()
    with desk(places, display):
        return time.monotonic() - started


def _flood(places: Places, display: str, frames: Path) -> tuple[list[float], float, int]:
    environ = {"WSH_DESKTOP_FRAMES": str(frames), "SHELL": "/bin/sh"}
    asking: list[Asking] = []
    with running_server(places, check_left=False) as server:
        with desk(places, display, environ=environ) as window:
            asking = [Asking(server, execute("echo", str(n), timeout_ms=90_000)) for n in range(REQUESTS)]
            window.wait_for_pending(REQUESTS, 60)
            _open_terminals(window)
            flag = frames.with_name("flooding")
            window.enter(f"touch {flag}; while :; do seq 100000; done")
            wait_until(flag.exists, "the flood")
            begin = time.monotonic() + 1.0
            time.sleep(FLOOD_S)
            end = time.monotonic()
            memory = float(psutil.Process(window.process.pid).memory_info().rss)
        for each in asking:
            each.join(30)
    times = [float(line) for line in frames.read_text().splitlines()]
    seen = [moment for moment in times if begin <= moment <= end]
    return [later - sooner for sooner, later in pairwise(seen)], memory, len(seen)


def _open_terminals(window: Desk) -> None:
    names: set[str] = set()
    for count in range(1, TERMINALS + 1):
        window.press("ctrl+shift+n")

        def is_new(wanted: int = count) -> bool:
            names.add(window.title())
            return len({name for name in names if " – " in name}) >= wanted

        wait_until(is_new, f"terminal {count}")
