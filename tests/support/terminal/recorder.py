"""Record what a real program prints on a terminal: the bytes that came out of its pty, with its questions answered."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.waiting import HANG_S
from wsh.terminal import Terminal


class Recorder:
    """A program on a pty of its own. `data` is all it printed, `terminal` shows it."""

    def __init__(self, argv: Sequence[str], cwd: Path, rows: int = 24, cols: int = 80) -> None:
        self.data = bytearray()
        self.terminal = Terminal(rows, cols)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(cwd),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LINES": str(rows),
            "COLUMNS": str(cols),
        }
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
                os.chdir(cwd)
                os.execvpe(argv[0], list(argv), environment)
            finally:
                os._exit(127)

    def wait_until(self, text: str) -> None:
        """Read until the screen shows `text`."""
        deadline = time.monotonic() + HANG_S
        while not any(text in str(line) for line in self.terminal.screen(False).lines):
            if not self._read(deadline):
                raise AssertionError(
                    f"{text!r} did not appear:\n" + "\n".join(map(str, self.terminal.screen(False).lines))
                )

    def settle(self, silence_s: float = 0.3) -> None:
        """Read until nothing has come for a while."""
        while self._read(time.monotonic() + silence_s):
            pass

    def send(self, data: bytes) -> None:
        os.write(self.fd, data)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            chunk = os.read(self.fd, 65536)
        except OSError:
            return False
        if not chunk:
            return False
        self.data += chunk
        self.terminal.feed(chunk)
        replies = self.terminal.take_replies()
        if replies:
            os.write(self.fd, replies)
        return True

    def close(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        self.terminal.close()
