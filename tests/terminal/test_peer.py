"""Screens of real programs, compared with what tmux makes of the very same bytes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.terminal.recorder import Recorder
from tests.support.waiting import wait_until
from wsh.terminal import Line, Terminal

ROWS, COLS = 24, 80


class Tmux:
    """A tmux server of our own that shows recorded bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = folder / "tmux.conf"
        config.write_text("set -g status off\nset -g history-limit 20000\nset -s escape-time 0\n")
        self.base = ["tmux", "-S", str(folder / "socket"), "-f", str(config)]

    def run(self, *arguments: str) -> str:
        return subprocess.run([*self.base, *arguments], check=True, capture_output=True, text=True).stdout

    def show(self, data: bytes) -> None:
        recording = self.folder / "recording"
        recording.write_bytes(data)
        # raw, since the recorded bytes have been through a pty once
        script = f"stty raw -echo; cat {recording}; tmux -S {self.folder / 'socket'} wait-for -S shown; exec sleep 600"
        self.run("new-session", "-d", "-x", str(COLS), "-y", str(ROWS), f"sh -c '{script}'")
        self.run("wait-for", "shown")

    def capture(self) -> list[str]:
        lines = self.run("capture-pane", "-p").split("\n")[:-1]
        lines = [line.rstrip() for line in lines]
        return lines + [""] * (ROWS - len(lines))

    def capture_styled(self) -> list[Line]:
        """The same with styles, read by painting tmux's own rendition."""
        painted = self.run("capture-pane", "-p", "-e", "-N").split("\n")[:-1]
        with Terminal(ROWS, COLS) as terminal:
            for row, line in enumerate(painted):
                terminal.feed(b"\x1b[%d;1H" % (row + 1) + line.encode())
            return terminal.screen(True).lines

    def cursor(self) -> tuple[int, int]:
        row, col = self.run("display-message", "-p", "#{cursor_y} #{cursor_x}").split()
        return int(row), int(col)

    def close(self) -> None:
        subprocess.run([*self.base, "kill-server"], check=False, capture_output=True)


def visible(line: Line) -> list[tuple[str, str]]:
    """A styled line cell by cell, without blanks at the end: tmux leaves erased cells out even if they are coloured."""
    assert isinstance(line, list)
    cells = []
    for span in line:
        style = {name: value for name, value in span.items() if name not in ("text", "link")}
        # a blank shows no foreground: tmux leaves that of the pen in erased cells, others do not
        blank = {name: value for name, value in style.items() if name in ("bg", "underline", "strikethrough")}
        if "inverse" in style:
            blank = style
        cells += [(character, repr(blank if character == " " else style)) for character in span["text"]]
    while cells and cells[-1][0] == " ":
        cells.pop()
    return cells


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    yield server
    server.close()


def vim(work: Path) -> Recorder:
    (work / "demo.py").write_text("".join(f"def f{n}(x):  # {n}\n    return 'é日本' + x * {n}\n" for n in range(40)))
    command = "echo before vim; exec vim --clean -n -c 'syntax on' -c 'set number cursorline' demo.py"
    program = Recorder(["sh", "-c", command], work)
    program.wait_until("def f1(x)")
    program.settle()
    for keys, seen in ((b"10G", "def f4"), (b"ohello from vim\x1b", "hello from vim"), (b":vsplit\r", "demo.py")):
        program.send(keys)
        program.wait_until(seen)
        program.settle()
    program.send(b"/f3(\r\x04\x04")
    program.settle()
    return program


def vim_left(work: Path) -> Recorder:
    program = vim(work)
    program.send(b":qa!\r")
    program.settle()
    return program


def less(work: Path) -> Recorder:
    (work / "long.txt").write_text("".join(f"line {n} \x1b[3{n % 8}mcolour\x1b[0m \u00e9\u4e2d\n" for n in range(300)))
    program = Recorder(["less", "-R", "-N", "long.txt"], work)
    program.wait_until("line 5")
    program.send(b" ")
    program.wait_until("line 40")
    program.send(b"/line 17\r")
    program.wait_until("line 170")
    program.send(b"kkkG")
    program.wait_until("(END)")
    program.settle()
    return program


def htop(work: Path) -> Recorder:
    program = Recorder(["htop", "-d", "5"], work)
    program.wait_until("PID")
    program.settle()
    program.send(b"\x1b[B\x1b[B")
    program.settle()
    return program


def nano(work: Path) -> Recorder:
    program = Recorder(["nano", "-I", "note.txt"], work)
    program.wait_until("GNU nano")
    program.send(b"hello world\rsecond line \xc3\xa9\xe6\x97\xa5\r\tindented")
    program.wait_until("indented")
    program.send(b"\x0f")
    program.wait_until("File Name")
    program.settle()
    return program


def python(work: Path) -> Recorder:
    program = Recorder(["python3", "-q"], work)
    program.wait_until(">>>")
    program.send(b"for i in range(30): print(i, '\\x1b[1;3%dmcolour\\x1b[0m' % (i % 8), '\xe4\xb8\xad' * (i % 5))\r\r")
    program.wait_until("29 colour")
    program.send(b"1/0\r")
    program.wait_until("ZeroDivisionError")
    program.settle()
    return program


def tmux_inside(work: Path) -> Recorder:
    socket = str(work / "inner")
    (work / "inner.conf").write_text(
        "set -g status-right right\nset -g default-command 'sh'\nset -g status-interval 0\n"
    )
    program = Recorder(["tmux", "-S", socket, "-f", str(work / "inner.conf"), "new-session", "-s", "inner"], work)
    try:
        program.wait_until("[inner]")
        program.settle()
        program.send(b"echo left; printf '\\033[42mgreen\\033[0m\\n'\r")
        program.wait_until("green")
        program.send(b"\x02%")
        program.settle()
        program.send(b"seq 40\r")
        program.wait_until("40")
        program.settle()
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)
    return program


def seq(work: Path) -> Recorder:
    program = Recorder(["seq", "30000"], work)
    program.wait_until("30000")
    program.settle()
    return program


@pytest.mark.parametrize("record", [vim, vim_left, less, htop, nano, python, tmux_inside, seq])
def test_the_screen_of_a_real_program_is_what_tmux_shows(
    record: Callable[[Path], Recorder], tmp_path: Path, tmux: Tmux
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    program = record(work)
    data = bytes(program.data)
    program.close()
    with Terminal(ROWS, COLS) as terminal:
        terminal.feed(data)
        screen = terminal.screen(False)
        tmux.show(data)
        wait_until(lambda: tmux.capture() == screen.lines, f"tmux to show {screen.lines}", seen=tmux.capture)
        assert any(screen.lines)
        assert [visible(line) for line in terminal.screen(True).lines] == [
            visible(line) for line in tmux.capture_styled()
        ]
        assert (screen.cursor.row, screen.cursor.col) == tmux.cursor()


def test_the_peer_is_here() -> None:
    for program in ("tmux", "vim", "less", "htop", "nano", "python3"):
        assert shutil.which(program), f"{program} is needed for this comparison"
