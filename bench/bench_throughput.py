"""PTY to screen through the real core (keeper and journal on), against tmux, a bare read loop and pyte.

Every contender runs the same child: it prints a file, asks for the cursor position and stops its own clock when the answer
has arrived, so nobody is done before everything has been parsed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte
import uvloop

from bench.corpus import KINDS, write_corpus
from bench.row import Row, at_least, interleave, median
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.setting import load
from wsh.wire.system.place import find_places

SIZE = 64 << 20
PYTE_SIZE = 96 << 10
ROUNDS = 7
CHILD = (
    "start=$EPOCHREALTIME; cat \"$1\"; printf '\\033[6n'; IFS= read -rsd R -t 120 answer; "
    'echo "$start $EPOCHREALTIME" > "$2.part"; mv "$2.part" "$2"'
)
TARGETS = {"plain": 1.6, "coloured": 1.5, "cursor": 2.5, "wide": 3.0}


def run() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_corpus(folder, SIZE)
        (folder / "small").mkdir()
        small = write_corpus(folder / "small", PYTE_SIZE)
        for kind in KINDS:
            file = files[kind]
            speeds = {
                name: median(values)
                for name, values in interleave(
                    {
                        "wsh": lambda file=file: _speed(_through_wsh, file, folder),  # type: ignore[misc]
                        "tmux": lambda file=file: _speed(_through_tmux, file, folder),  # type: ignore[misc]
                        "bare": lambda file=file: _speed(_through_bare, file, folder),  # type: ignore[misc]
                    },
                    ROUNDS,
                ).items()
            }
            pyte_speed = _speed(_through_pyte, small[kind], folder)
            title = f"{kind} text"
            rows.append(at_least("throughput", title, speeds["wsh"], speeds["tmux"], "MB/s", "tmux", TARGETS[kind]))
            floor = 0.95 if kind == "plain" else 0.0
            rows.append(at_least("throughput", title, speeds["wsh"], speeds["bare"], "MB/s", "bare read loop", floor))
            rows.append(at_least("throughput", title, speeds["wsh"], pyte_speed, "MB/s", "pyte", 1.0))
    return rows


def _speed(through: Callable[[list[str], Path], None], file: Path, folder: Path) -> float:
    done = folder / "done"
    done.unlink(missing_ok=True)
    through(["bash", "--norc", "-c", CHILD, "_", str(file), str(done)], done)
    start, end = (float(part) for part in done.read_text().split())
    return file.stat().st_size / (end - start) / 1e6


def _through_wsh(argv: list[str], done: Path) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as home:
            places = find_places({"HOME": home, "XDG_RUNTIME_DIR": home})
            registry = await SessionRegistry.open(places, load(None, {}))
            try:
                session = await registry.open_session(SessionSpec(argv=argv))
                await session.wait(WaitSpec(exit=True, max_wait_ms=120_000))
            finally:
                await registry.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def _through_tmux(argv: list[str], done: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        tmux = ["tmux", "-S", f"{home}/socket", "-f", "/dev/null"]
        subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", *argv], check=True)
        deadline = time.monotonic() + 120
        while not done.exists():
            assert time.monotonic() < deadline, "tmux did not get done"
            time.sleep(0.005)
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)


def _read_loop(argv: list[str], feed: Callable[[bytes], object]) -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    tail = b""
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        feed(data)
        tail = (tail + data)[-8:]
        if b"\x1b[6n" in tail:
            os.write(fd, b"\x1b[1;1R")
            tail = b""
    os.close(fd)
    os.waitpid(pid, 0)


def _through_bare(argv: list[str], done: Path) -> None:
    _read_loop(argv, lambda data: None)


def _through_pyte(argv: list[str], done: Path) -> None:
    stream = pyte.ByteStream(pyte.HistoryScreen(80, 24, history=10_000))
    _read_loop(argv, stream.feed)
