"""A screen, the real window on it, and hands: Xvfb, the program, xdotool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S, wait_until
from wsh.wire.system.place import Places

TITLE = "interactive-terminal"
_STEP_S = 3.0
"""A busy machine shows the next terminal within so long; where there is no next one, the list of them has not come yet."""
_SETTLED_S = 0.3

QUEUE = 6
"""Requests that may wait at once in the window of these tests."""


@contextmanager
def virtual_screen(size: str = "1280x800x24") -> Iterator[str]:
    """An X server of its own; gives the value for DISPLAY."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", size, "-nolisten", "tcp", "-noreset"],
        pass_fds=(writer,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as said:
            yield f":{said.readline().strip()}"
    finally:
        process.terminate()
        process.wait(HANG_S)


_ANSWERS = {"ctrl+Return", "ctrl+shift+Return", "ctrl+shift+a", "ctrl+e", "ctrl+BackSpace", "ctrl+shift+BackSpace"}


@dataclass
class Desk:
    """The window, seen and touched from outside."""

    process: subprocess.Popen[str]
    display: str
    places: Places
    port: int
    layout_file: Path

    def _tool(self, *words: str) -> str:
        environ = {**os.environ, "DISPLAY": self.display}
        done = subprocess.run(
            ["xdotool", *words], env=environ, capture_output=True, text=True, timeout=HANG_S, check=True
        )
        return done.stdout

    def focus(self) -> None:
        """There is no window manager here, so the window is given the keyboard by hand."""
        self._tool("windowfocus", "--sync", wait_until(self._find_window, "the window"))

    def press(self, *keys: str, unseen: bool = False) -> None:
        """Keys that answer a card wait until it stands there; `unseen` presses them before its end has been in view."""
        self.focus()
        for key in keys:
            if key in _ANSWERS and not unseen:
                wait_until(self._has_card_in_view, "a card in view", seen=lambda: self.layout()["items"])
            self._tool("key", "--clearmodifiers", key)

    def _has_card_in_view(self) -> bool:
        items = self.layout()["items"]
        return "card" in items and "scrollFirst" not in items

    def type(self, text: str) -> None:
        self._tool("type", "--delay", "5", text)

    def enter(self, text: str) -> None:
        self.type(text)
        self.press("Return")

    def enter_command(self, text: str) -> None:
        """At the prompt of the terminal in front, once it is there and the keys go to it."""
        self.focus()
        wait_until(self._is_at_prompt, "a prompt in the window", seen=self.layout)
        self.enter(text)

    def _is_at_prompt(self) -> bool:
        said = self.layout()["terminal"]
        return bool(said.get("has_keyboard")) and any(row.strip() for row in said["rows"])

    def hold_until(self, x: int, y: int, condition: Callable[[], object], what: str) -> None:
        """Press the mouse there, and let go when the condition holds."""
        self._tool("mousemove", str(x), str(y), "mousedown", "1")
        try:
            wait_until(condition, what)
        finally:
            self._tool("mouseup", "1")

    def click(self, x: int, y: int) -> None:
        self._tool("mousemove", str(x), str(y), "click", "1")

    def picture(self, path: Path) -> None:
        environ = {**os.environ, "DISPLAY": self.display}
        subprocess.run(["import", "-window", "root", str(path)], env=environ, check=True, timeout=HANG_S)

    def pixels(self, left: int, top: int, width: int, height: int) -> list[bytes]:
        """A part of the screen, row by row, three bytes for each pixel."""
        environ = {**os.environ, "DISPLAY": self.display}
        words = ["import", "-window", "root", "-crop", f"{width}x{height}+{left}+{top}", "-depth", "8", "rgb:-"]
        data = subprocess.run(words, env=environ, check=True, timeout=HANG_S, capture_output=True).stdout
        return [data[row * width * 3 : (row + 1) * width * 3] for row in range(height)]

    # where things are: the window is asked

    def layout(self) -> dict[str, Any]:
        """What the window says of itself, as of its last frame."""
        try:
            said: dict[str, Any] = json.loads(self.layout_file.read_text())
        except FileNotFoundError:
            said = {"items": {}, "terminal": {}}
        return said

    def shows(self, name: str) -> bool:
        """Whether an item can be seen, by its `objectName`."""
        return name in self.layout()["items"]

    def box(self, name: str) -> tuple[int, int, int, int]:
        """Left, top, width and height of an item that can be seen, in whole pixels."""
        left, top, width, height = wait_until(
            lambda: self.layout()["items"].get(name), f"{name} in the window", seen=lambda: list(self.layout()["items"])
        )
        return int(left), int(top), int(width), int(height)

    def middle(self, name: str) -> tuple[int, int]:
        left, top, width, height = self.box(name)
        return left + width // 2, top + height // 2

    def cells(self, row: int, col: int, rows: int = 1, cols: int = 1) -> tuple[int, int, int, int]:
        """The rectangle of these cells of the terminal in front."""
        x, y, width, height = self.layout()["terminal"]["cell"]
        return int(x + col * width), int(y + row * height), int(cols * width), int(rows * height)

    def terminal_size(self) -> tuple[int, int]:
        """Rows and columns that the terminal in front shows."""
        said = self.layout()["terminal"]
        return len(said.get("rows", [])), int(said.get("cols", 0))

    def terminal_text(self) -> str:
        return "\n".join(self.layout()["terminal"].get("rows", []))

    def has_color(self, name: str, colors: set[bytes]) -> bool:
        """Whether one of these colours is in the picture of an item."""
        box = self.layout()["items"].get(name)
        if box is None:
            return False
        data = b"".join(self.pixels(*map(int, box)))
        return any(_has_pixel(data, color) for color in colors)

    def title(self) -> str:
        """What the window is called now; nothing while it cannot be found."""
        try:
            found = self._find_window()
            return self._tool("getwindowname", found).strip() if found else ""
        except subprocess.CalledProcessError:
            return ""

    def _find_window(self) -> str:
        """Its number; nothing while it cannot be found."""
        try:
            return self._tool("search", "--onlyvisible", "--name", TITLE).split()[-1]
        except (subprocess.CalledProcessError, IndexError):
            return ""

    def wait_for_pending(self, count: int) -> None:
        """The window's title says how many requests wait."""

        def is_said() -> bool:
            title = self.title()
            return title.startswith(f"({count}) ") if count else bool(title) and not title.startswith("(")

        wait_until(is_said, f"{count} requests in the window", seen=self.title)

    def show_terminal(self, name: str) -> None:
        """Step through the terminals until this one is in front, and no step is under way any more."""

        def is_shown() -> bool:
            before = self.title()
            if before.startswith(f"{name} "):
                return not self._changes_title(before, _SETTLED_S)
            self.press("ctrl+Next")
            self._changes_title(before, _STEP_S)
            return False

        wait_until(is_shown, f"the terminal {name}", seen=self.title)

    def _changes_title(self, before: str, within_s: float) -> bool:
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if self.title() != before:
                return True
            time.sleep(0.02)
        return False


@contextmanager
def desk(
    places: Places,
    display: str,
    *arguments: str,
    environ: dict[str, str] | None = None,
    within: Sequence[str] = (),
) -> Iterator[Desk]:
    """The window on `display`; `within` is a command that starts it somewhere else."""
    layout = places.state.parent / f"layout-{time.monotonic_ns()}.json"
    environment = {
        **os.environ,
        "DISPLAY": display,
        "QT_QPA_PLATFORM": "xcb",
        "LANG": "C.UTF-8",
        "WSH_DESKTOP_LAYOUT": str(layout),
        **(environ or {}),
    }
    process = subprocess.Popen(
        [*within, sys.executable, "-m", "wsh.desktop.main", "--port", "0", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        opened = Desk(process, display, places, int(line.rpartition(":")[2]), layout)
        wait_until(lambda: _has_window(opened), "the window")
        yield opened
    finally:
        process.terminate()
        assert process.wait(HANG_S) == 0
        process.stdout.close()


def _has_pixel(data: bytes, color: bytes) -> bool:
    at = data.find(color)
    while at > 0 and at % 3:
        at = data.find(color, at + 1)
    return at >= 0


def _has_window(opened: Desk) -> bool:
    try:
        return bool(opened.title())
    except (subprocess.CalledProcessError, IndexError):
        return False


class Asking(threading.Thread):
    """An agent that asks through the contract and waits for the answer."""

    def __init__(self, server: RunningServer, body: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._server, self._body = server, body
        self._answer: dict[str, Any] | None = None
        self.start()

    def run(self) -> None:
        reply = self._server.request("POST", "/terminal", self._body, headers={"wsh-role": "agent"}, timeout=120)
        self._answer = json.loads(reply.body)

    def answer(self, timeout: float = 60.0) -> dict[str, Any]:
        self.join(timeout)
        assert self._answer is not None, "no answer in time"
        return self._answer


def audit(places: Places) -> list[dict[str, Any]]:
    return [json.loads(line) for line in places.audit_log.read_text().splitlines()]


def execute(command: str, *args: str, timeout_ms: int = 120_000, **more: Any) -> dict[str, Any]:
    invocation = more.pop("invocation", {"mode": "interactive", "intent": "execute_command"})
    runtime: dict[str, Any] = {"cwd": "/tmp", "timeout_ms": timeout_ms}
    if invocation["mode"] == "interactive":
        runtime["spawn_timeout_ms"] = 30_000
    return {
        "action": "execute",
        "invocation": invocation,
        "runtime": runtime,
        "execution": {"command": command, "args": list(args)},
        **more,
    }
