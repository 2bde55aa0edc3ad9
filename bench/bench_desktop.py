"""The window on a virtual screen: how soon it is there, how smooth it stays, how soon a key shows, how much memory it takes.

With 50 requests waiting and 20 terminals open, the last one prints without end and is looked at. A frame counts when the scene says that it
was shown; keys are counted from the moment the window hears them to the first frame that shows what the program answered, in the very terminal
that a file of 50 MB is being written to again and again. Memory is that of both processes of the program. The processor time of the process that
draws, divided by its frames, says what a frame costs even when other programs take their turns in between.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from tests.support.desktop.window import Asking, Desk, desk, execute, virtual_screen
from tests.support.serving import running_server
from tests.support.waiting import wait_until

from bench.row import Row, at_most, at_most_ratio, median, percentile
from wsh.wire.system.place import Places, find_places

REQUESTS, TERMINALS, FLOOD_S = 50, 20, 8.0
SCREEN_MS = 1000 / 60
KEYS = "abcdefghijklmnopqrstuvwxyz" * 2

CAT = r"""
import os, sys, termios, threading, tty
flood = open(sys.argv[1], "rb").read().replace(b"\n", b"\r\n")
rows = os.get_terminal_size().lines
tty.setraw(0)
os.write(1, b"\033[2J\033[3;%dr\033[%d;1H" % (rows, rows))
def cat():
    while True:
        for at in range(0, len(flood), 65536):
            os.write(1, flood[at : at + 65536])
threading.Thread(target=cat, daemon=True).start()
typed = b""
open(sys.argv[2], "w").close()
while True:
    typed += os.read(0, 64)
    os.write(1, b"\0337\033[1;1H" + typed + b"\0338")
"""


@dataclass
class Seen:
    frames: list[float]
    memory: float
    drawing_s: float


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
            seen = _flood(places, display, root / "frames")
            echoes = _echo(places, display, root)
        finally:
            os.environ.clear()
            os.environ.update(before)
    note = f"{REQUESTS} requests, {TERMINALS} terminals, one flooding"
    spans = [later - sooner for sooner, later in pairwise(seen.frames)]
    return [
        at_most("window", "start until it is shown", start_s, 2.0, "s"),
        _in_periods("time between frames, p99", percentile(spans, 0.99), 2, note),
        _in_periods("time between frames, median", median(spans), 2, f"{len(spans)} frames"),
        at_most("window", "processor time of a frame", seen.drawing_s / len(spans) * 1000, 16.0, "ms", "drawing"),
        at_most("window", "resident memory, both processes", seen.memory / 2**20, 300.0, "MB", note),
        _in_periods("key until its echo is shown, p99", percentile(echoes, 0.99), 3, "50 MB files"),
        _in_periods("key until its echo is shown, median", median(echoes), 3, f"{len(echoes)} keys"),
    ]


def _in_periods(title: str, value_s: float, periods: float, note: str) -> Row:
    """The window draws in time with its screen, so that is what it is compared with."""
    return at_most_ratio("window", title, value_s * 1000, SCREEN_MS, "ms", "a screen's period", periods, note)


def _start(places: Places, display: str) -> float:
    started = time.monotonic()
    with desk(places, display):
        return time.monotonic() - started


def _processes(window: Desk) -> tuple[psutil.Process, psutil.Process]:
    """Core and window; the keeper, the shells and what runs in them are not the program."""
    core = psutil.Process(window.process.pid)
    return core, next(child for child in core.children() if "wsh.desktop.window.main" in child.cmdline())


def _flood(places: Places, display: str, frames: Path) -> Seen:
    environ = {"WSH_DESKTOP_FRAMES": str(frames), "SHELL": "/bin/sh"}
    asking: list[Asking] = []
    with running_server(places, check_left=False) as server:
        with desk(places, display, environ=environ) as window:
            asking = [Asking(server, execute("echo", str(n), timeout_ms=90_000)) for n in range(REQUESTS)]
            window.wait_for_pending(REQUESTS)
            _open_terminals(window)
            flag = frames.with_name("flooding")
            window.enter(f"touch {flag}; while :; do seq 100000; done")
            wait_until(flag.exists, "the flood")
            core, drawing = _processes(window)
            time.sleep(1.0)
            begin, before = time.monotonic(), drawing.cpu_times()
            time.sleep(FLOOD_S)
            end, after = time.monotonic(), drawing.cpu_times()
            memory = float(core.memory_info().rss + drawing.memory_info().rss)
        for each in asking:
            each.join(30)
    seen = [at for at, kind, _ in _read(frames) if kind == "frame" and begin <= at <= end]
    return Seen(seen, memory, after.user + after.system - before.user - before.system)


def _read(times: Path) -> list[tuple[float, str, str]]:
    found = []
    for line in times.read_text().splitlines():
        at, kind, text = f"{line} ".split(" ", 2)
        found.append((float(at), kind, text.strip()))
    return found


def _echo(places: Places, display: str, root: Path) -> list[float]:
    times, big, program, flag = root / "times", root / "big", root / "cat.py", root / "catting"
    line = "".join(chr(33 + n % 90) for n in range(99)) + "\n"
    big.write_text(line * (50_000_000 // len(line)))
    program.write_text(CAT)
    with desk(places, display, environ={"WSH_DESKTOP_FRAMES": str(times), "SHELL": "/bin/sh"}) as window:
        window.press("ctrl+shift+n")
        wait_until(lambda: " – " in window.title(), "a terminal")
        window.enter(f"{sys.executable} {program} {big} {flag}")
        wait_until(flag.exists, "the flood")
        time.sleep(1.0)
        for key in KEYS:
            window.type(key)
            time.sleep(0.08)
        time.sleep(0.5)
    seen = _read(times)
    keys = [at for at, kind, text in seen if kind == "key"][-len(KEYS) :]
    frames = [(at, text) for at, kind, text in seen if kind == "frame"]
    return [
        next(shown for shown, text in frames if shown >= at and text.startswith(KEYS[: count + 1])) - at
        for count, at in enumerate(keys)
    ]


def _open_terminals(window: Desk) -> None:
    names: set[str] = set()
    for count in range(1, TERMINALS + 1):
        window.press("ctrl+shift+n")

        def is_new(wanted: int = count) -> bool:
            names.add(window.title())
            return len({name for name in names if " – " in name}) >= wanted

        wait_until(is_new, f"terminal {count}")
