"""A person's terminal: a pane of tmux, or the other end of a pty, with `wsh attach` in it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S, wait_for_text

WSH = f"{sys.executable} -m wsh.cli.main"


class Pane:
    """A tmux pane that stands for a person's terminal."""

    def __init__(self, folder: Path, command: str, rows: int = 24, cols: int = 80) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        size = ["-x", str(cols), "-y", str(rows)]
        self._run("new-session", "-d", *size, f"{command}; echo status $?; exec cat")
        self._run("set-option", "-g", "history-limit", "5000")

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], check=True, capture_output=True, text=True, timeout=HANG_S)
        return done.stdout

    def type(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def text(self, history: bool = False) -> str:
        return self._run("capture-pane", "-p", *(["-S", "-"] if history else []))

    def resize(self, rows: int, cols: int) -> None:
        self._run("resize-window", "-x", str(cols), "-y", str(rows))

    def wait(self, condition: Callable[[str], bool], what: str) -> str:
        return wait_for_text(self.text, condition, what)

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


def make(server: RunningServer, name: str, command: str = "sh", **more: object) -> None:
    reply = server.request("POST", "/sessions", {"name": name, "command": command, "env": {"PS1": "$ "}, **more})
    assert reply.status == 201, reply


def read_until(fd: int, condition: Callable[[bytes], bool], seen: bytes) -> bytes:
    deadline = time.monotonic() + HANG_S
    while not condition(seen):
        assert time.monotonic() < deadline, seen
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
    return seen
