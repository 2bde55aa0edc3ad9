"""esctest2, run as its own program on a pty: what it prints goes to a terminal, what that answers goes back.

It looks at cells by asking for checksums (DECRQCRA) and for the size (CSI 18 t); where a terminal does not answer these, its own cells
answer for it, so that the case speaks of what it is about.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from bench.scorecard.engine import Engine
from bench.scorecard.outcome import PASSED, Outcome
from bench.scorecard.suite_libvterm import spread

ROWS, COLS = 25, 80
_LOOK = re.compile(rb"\x1b\[(\d*);(\d*);(\d*);(\d*);(\d*);(\d*)\*y|\x1b\[18t")
_NAME = re.compile(r"Run test: (\S+)")
LONGEST_S = 1500
ANSWERS_S = 0.6


def run(folder: Path, engine: Engine) -> dict[str, Outcome]:
    """What is missed is asked again: on a busy machine an answer that comes late spoils the cases after it."""
    with tempfile.TemporaryDirectory() as work:
        found = _drive(folder, engine, Path(work) / "log", [])
        missed = [re.escape(name) + "$" for name, outcome in found.items() if outcome.passed is False]
        if missed:
            again = _drive(folder, engine, Path(work) / "again", ["--include", "|".join(missed)])
            found |= {name: outcome for name, outcome in again.items() if outcome.passed}
        return found


def _drive(folder: Path, engine: Engine, log: Path, options: list[str]) -> dict[str, Outcome]:
    engine.open(ROWS, COLS)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
    words = [sys.executable, "esctest.py", "--expected-terminal=xterm", "--no-print-logs", f"--logfile={log}"]
    words += [*options, f"--timeout={ANSWERS_S}", "--max-vt-level=5", "--options", "xtermWinopsEnabled"]
    process = subprocess.Popen(
        words, cwd=folder, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(theirs)
    bridge = _Bridge(engine, ours)
    deadline = time.monotonic() + LONGEST_S
    try:
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.005)[0]:
                try:
                    data = os.read(ours, 65536)
                except OSError:
                    break
                if not data:
                    break
                bridge.take(data)
            elif process.poll() is not None:
                break
            bridge.pass_replies()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return read_log(log.read_text("utf-8", "replace"))


class _Bridge:
    def __init__(self, engine: Engine, descriptor: int) -> None:
        self.engine = engine
        self.descriptor = descriptor
        self.shown: list[str] | None = None
        self.columns: list[list[str]] = []
        self.held = b""

    def take(self, data: bytes) -> None:
        data, self.held = self.held + data, b""
        # A question may have come in two pieces.
        unfinished = re.search(rb"\x1b(?:\[[\d;]*\*?)?\Z", data)
        if unfinished:
            data, self.held = data[: unfinished.start()], data[unfinished.start() :]
        at = 0
        for match in _LOOK.finditer(data):
            self._feed(data[at : match.start()])
            at = match.end()
            if match[0].endswith(b"t"):
                self._answer(b"\x1b[8;%d;%dt" % (ROWS, COLS))
            else:
                self._answer_checksum([int(number or 0) for number in match.groups()])
        self._feed(data[at:])

    def _feed(self, data: bytes) -> None:
        if data:
            self.shown = None
            self._answer(self.engine.feed(data))

    def pass_replies(self) -> None:
        if self.held:
            # Nothing more came: it was whole.
            held, self.held = self.held, b""
            self._feed(held)
        self._answer(self.engine.late_replies())

    def _answer(self, data: bytes) -> None:
        if data:
            os.write(self.descriptor, data)

    def _answer_checksum(self, parameters: list[int]) -> None:
        number, _, top, left, bottom, right = parameters
        if self.shown is None:
            self.shown = []
            rows = self.engine.show()
            self._answer(self.engine.late_replies())
            self.columns = [[cell[0] for cell in spread(row)] for row in rows]
        total = 0
        for row in range(max(top, 1) - 1, bottom):
            for col in range(max(left, 1) - 1, right):
                line = self.columns[row] if row < len(self.columns) else []
                text = line[col] if col < len(line) else " "
                total += ord(text[0]) if text else 32
        self._answer(b"\x1bP%d!~%04X\x1b\\" % (number, (0x10000 - total) & 0xFFFF))


def read_log(log: str) -> dict[str, Outcome]:
    """The log by cases. Where xterm itself is known to fail, a pass is a pass and a miss does not count."""
    found: dict[str, Outcome] = {}
    names = list(_NAME.finditer(log))
    for at, match in enumerate(names):
        body = log[match.end() : names[at + 1].start() if at + 1 < len(names) else len(log)]
        if "Fails as expected" in body:
            found[match[1]] = Outcome(None, "xterm fails it as well")
        elif "Skipped because" in body:
            found[match[1]] = Outcome(None, "skipped by the suite")
        elif "Should have failed" in body or "Passed." in body:
            found[match[1]] = PASSED
        else:
            lines = [line for line in body.splitlines() if line.strip()]
            tail = [line.strip() for line in lines if re.search(r"(esctypes\.|Exception|Error)", line)]
            found[match[1]] = Outcome(False, (tail[-1] if tail else "no end")[:160])
    return found
