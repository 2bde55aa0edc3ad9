"""The four terminals that are compared: each is fed bytes and shows cells."""

from __future__ import annotations

import base64
import json
import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from bench.scorecard.cache import headless_folder
from wsh.terminal import Line, Terminal
from wsh.terminal.engine.limit import TerminalLimits

Colour: TypeAlias = tuple[int, ...] | None
Cell: TypeAlias = tuple[str, str]
"""A character with its marks, and its style as text."""
Row: TypeAlias = list[Cell]

log = logging.getLogger(__name__)
HERE = Path(__file__).resolve().parent
HISTORY = 20_000
NAMED = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_FLAGS = ("bold", "faint", "italic", "underline", "strikethrough", "blink", "inverse")


def make_cell(text: str, fg: Colour, bg: Colour, flags: Iterable[str]) -> Cell:
    """One cell in the spelling that all share. A blank shows no foreground and no weight, so these do not count there."""
    names = [name for name in _FLAGS if name in flags]
    if text == " " and "inverse" not in names:
        fg, names = None, [name for name in names if name in ("underline", "strikethrough")]
    parts = [f"fg={fg}" for _ in (1,) if fg is not None] + [f"bg={bg}" for _ in (1,) if bg is not None]
    return text, " ".join([*parts, *names])


def indexed(number: int) -> Colour:
    """A colour of the palette. Those above 15 are fixed by convention, so they are told by their values."""
    if number < 16:
        return (number,)
    if number >= 232:
        return (8 + (number - 232) * 10,) * 3
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return steps[number // 36], steps[number // 6 % 6], steps[number % 6]


def trimmed(row: Row, *, coloured: bool) -> Row:
    """Without the blanks at the end; with `coloured` also those that have a background."""
    end = len(row)
    while end and row[end - 1][0] == " " and (coloured or not row[end - 1][1]):
        end -= 1
    return row[:end]


def text_of(row: Row) -> str:
    return "".join(text for text, _ in row).rstrip()


class Engine(ABC):
    """A terminal that is fed. `open` begins a new one."""

    name: str
    tells_coloured_blanks = True
    """Whether it shows the colour of blanks at the end of a line."""

    @abstractmethod
    def open(self, rows: int, cols: int) -> None: ...

    @abstractmethod
    def feed(self, data: bytes) -> bytes:
        """Take output of a program; returns the answers that are there already."""

    @abstractmethod
    def resize(self, rows: int, cols: int) -> None: ...

    @abstractmethod
    def show(self, *, everything: bool = False) -> list[Row]:
        """The rows of the screen, or all that is kept."""

    @abstractmethod
    def cursor(self) -> tuple[int, int]: ...

    def late_replies(self) -> bytes:
        """Answers that came after `feed` had returned."""
        return b""

    def close(self) -> None:
        return


class WshEngine(Engine):
    name = "wsh"
    _terminal: Terminal | None = None

    def open(self, rows: int, cols: int) -> None:
        self.close()
        self._terminal = Terminal(rows, cols, TerminalLimits(scrollback_lines=HISTORY))

    @property
    def terminal(self) -> Terminal:
        assert self._terminal is not None, "open it first"
        return self._terminal

    def feed(self, data: bytes) -> bytes:
        self.terminal.feed(data)
        return self.terminal.take_replies()

    def resize(self, rows: int, cols: int) -> None:
        self.terminal.resize(rows, cols)

    def show(self, *, everything: bool = False) -> list[Row]:
        if everything:
            return [read_line(line) for line in self.terminal.scrollback(limit=HISTORY, styled=True).lines]
        return [read_line(line) for line in self.terminal.screen(True).lines]

    def cursor(self) -> tuple[int, int]:
        cursor = self.terminal.screen(False).cursor
        return cursor.row, cursor.col

    def close(self) -> None:
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None


def read_line(line: Line) -> Row:
    """A styled line of wsh, character by character."""
    assert isinstance(line, list)
    row: Row = []
    for span in line:
        row += [
            make_cell(character, _read_colour(span.get("fg")), _read_colour(span.get("bg")), span)
            for character in span["text"]
        ]
    return row


def _read_colour(colour: Any) -> Colour:
    if colour is None:
        return None
    if "indexed" in colour:
        return indexed(colour["indexed"])
    rgb = colour["rgb"]
    return rgb["r"], rgb["g"], rgb["b"]


class PyteEngine(Engine):
    name = "pyte"

    def open(self, rows: int, cols: int) -> None:
        import pyte

        self.screen = pyte.HistoryScreen(cols, rows, history=HISTORY, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.replies = b""
        setattr(self.screen, "write_process_input", self._answer)  # noqa: B010, mypy knows it as a method

    def _answer(self, data: str) -> None:
        self.replies += data.encode()

    def feed(self, data: bytes) -> bytes:
        try:
            self.stream.feed(data)
        except Exception as problem:
            # It stumbles over sequences that it does not know; what follows is fed to it all the same.
            log.debug("pyte: %r", problem)
        replies, self.replies = self.replies, b""
        return replies

    def resize(self, rows: int, cols: int) -> None:
        self.screen.resize(rows, cols)

    def show(self, *, everything: bool = False) -> list[Row]:
        screen = self.screen
        lines = [screen.buffer[number] for number in range(screen.lines)]
        if everything:
            lines = [*screen.history.top, *lines]
        return [
            [_pyte_cell(line[column]) for column in range(screen.columns) if line[column].data != ""] for line in lines
        ]

    def cursor(self) -> tuple[int, int]:
        # It keeps a cursor that waits to wrap one column to the right of the last.
        return self.screen.cursor.y, min(self.screen.cursor.x, self.screen.columns - 1)


def _pyte_cell(char: Any) -> Cell:
    flags = {
        "bold": char.bold,
        "italic": char.italics,
        "underline": char.underscore,
        "strikethrough": char.strikethrough,
        "blink": char.blink,
        "inverse": char.reverse,
    }
    return make_cell(
        char.data, _pyte_colour(char.fg), _pyte_colour(char.bg), [name for name, on in flags.items() if on]
    )


def _pyte_colour(name: str) -> Colour:
    if name == "default":
        return None
    for bright in (False, True):
        plain = name.removeprefix("bright") if bright else name
        if plain in NAMED and (not bright or name.startswith("bright")):
            return (NAMED.index(plain) + 8 * bright,)
    if name == "bfightmagenta":  # as pyte 0.8.2 spells it
        return (13,)
    return tuple(bytes.fromhex(name))


class HeadlessEngine(Engine):
    name = "@xterm/headless"

    def __init__(self) -> None:
        folder = headless_folder()
        assert folder is not None
        node = shutil.which("node") or str(Path(sys.executable).parent / "node")
        self.process = subprocess.Popen(
            [node, str(HERE / "headless.mjs"), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def _ask(self, **request: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def open(self, rows: int, cols: int) -> None:
        self._ask(op="open", rows=rows, cols=cols, history=HISTORY)

    def feed(self, data: bytes) -> bytes:
        return base64.b64decode(self._ask(op="feed", data=base64.b64encode(data).decode())["replies"])

    def resize(self, rows: int, cols: int) -> None:
        self._ask(op="resize", rows=rows, cols=cols)

    def show(self, *, everything: bool = False) -> list[Row]:
        rows = self._ask(op="show", all=everything)["rows"]
        return [[self._cell(*cell) for cell in row] for row in rows]

    @staticmethod
    def _cell(text: str, fg: Any, bg: Any, flags: list[str]) -> Cell:
        read: Callable[[Any], Colour] = lambda colour: (  # noqa: E731
            indexed(colour) if isinstance(colour, int) else tuple(colour) if colour else None
        )
        return make_cell(text, read(fg), read(bg), flags)

    def cursor(self) -> tuple[int, int]:
        row, col = self._ask(op="show", all=False)["cursor"]
        return row, col

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


class TmuxEngine(Engine):
    """A pane of a tmux server of our own, whose program prints what it is sent over a socket."""

    name = "tmux"
    tells_coloured_blanks = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wsh-scorecard-"))
        config = self.folder / "tmux.conf"
        config.write_text(
            f"set -g status off\nset -g history-limit {HISTORY}\nset -s escape-time 0\n"
            "set -g default-terminal tmux-256color\nset -g remain-on-exit on\n"
        )
        self.base = ["tmux", "-S", str(self.folder / "socket"), "-f", str(config)]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / "relay"))
        self.listener.listen()
        self.connection: socket.socket | None = None
        self.rows = self.cols = 0
        self.held = b""

    def run(self, *words: str) -> str:
        environ = {**os.environ, "LC_ALL": "C.UTF-8"}
        environ.pop("TMUX", None)
        done = subprocess.run([*self.base, *words], check=False, capture_output=True, env=environ)
        return done.stdout.decode("utf-8", "surrogateescape")

    def open(self, rows: int, cols: int) -> None:
        before, self.rows, self.cols, self.held = self.connection, rows, cols, b""
        relay = f"exec {sys.executable} -S -E {HERE / 'pane_relay.py'} {self.folder / 'relay'}"
        self.run("new-session", "-d", "-x", str(cols), "-y", str(rows), "-s", f"s{time.monotonic_ns()}", relay)
        self.listener.settimeout(30)
        self.connection = self.listener.accept()[0]
        self._sync()
        self.feed(b"\x1bc")
        if before is not None:
            before.close()
        sessions = self.run("list-sessions", "-F", "#{session_name}").split()
        self.target = f"{sorted(sessions)[-1]}:"
        for session in sorted(sessions)[:-1]:
            self.run("kill-session", "-t", session)

    def _sync(self) -> None:
        """Wait until it has read everything: it answers a question after what came before."""
        assert self.connection is not None
        self.connection.sendall(b"\x1b[5n")
        self._collect(b"\x1b[0n", 2.0)

    def _collect(self, until: bytes, seconds: float) -> None:
        assert self.connection is not None
        deadline = time.monotonic() + seconds
        while until not in self.held and time.monotonic() < deadline:
            if select.select([self.connection], [], [], max(0, deadline - time.monotonic()))[0]:
                self.held += self.connection.recv(65536)
        before, found, after = self.held.rpartition(until)
        if found:
            self.held = before + after

    def feed(self, data: bytes) -> bytes:
        assert self.connection is not None
        self.connection.sendall(data)
        return b""

    def late_replies(self) -> bytes:
        assert self.connection is not None
        while select.select([self.connection], [], [], 0)[0]:
            data = self.connection.recv(65536)
            if not data:
                break
            self.held += data
        replies, self.held = self.held, b""
        return replies

    def resize(self, rows: int, cols: int) -> None:
        self._sync()
        self.rows, self.cols = rows, cols
        self.run("resize-window", "-t", self.target, "-x", str(cols), "-y", str(rows))

    def show(self, *, everything: bool = False) -> list[Row]:
        self._sync()
        words = ["capture-pane", "-p", "-e", "-N", "-t", self.target]
        painted = self.run(*words, *(("-S", "-") if everything else ())).split("\n")[:-1]
        found: list[Row] = []
        # What it paints is read by painting it. Its pen goes on from line to line.
        with Terminal(1, min(1000, self.cols + 2)) as terminal:
            terminal.feed(b"\x1b)0")  # lines are drawn after a shift out
            for line in painted:
                terminal.feed(b"\x1b[H\x1b7\x1b[0m\x1b[2K\x1b8" + line.encode("utf-8", "surrogateescape"))
                found.append(read_line(terminal.screen(True).lines[0]))
        return found

    def cursor(self) -> tuple[int, int]:
        self._sync()
        row, col = self.run("display-message", "-p", "-t", self.target, "#{cursor_y} #{cursor_x}").split()
        # It keeps a cursor that waits to wrap one column to the right of the last.
        return int(row), min(int(col), self.cols - 1)

    def close(self) -> None:
        self.run("kill-server")
        if self.connection is not None:
            self.connection.close()
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def open_engines() -> tuple[list[Engine], list[str]]:
    """The engines that are here, and for each of the others a sentence."""
    engines: list[Engine] = [WshEngine()]
    missing: list[str] = []
    if shutil.which("tmux"):
        engines.append(TmuxEngine())
    else:
        missing.append("tmux is not installed")
    if headless_folder() is not None:
        engines.append(HeadlessEngine())
    else:
        missing.append("@xterm/headless is not in the cache")
    try:
        import pyte  # noqa: F401
    except ImportError:
        missing.append("pyte is not installed")
    else:
        engines.append(PyteEngine())
    return engines, missing
