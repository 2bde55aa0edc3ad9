"""What a program sends to its terminal and what the terminal sends back pass through `wsh attach`, also where only a part is shown."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.pane import WSH, make, read_until
from tests.support.serving import RunningServer

PROGRAM = (
    "stty raw -echo; printf '\\033[38;2;12;34;56m\\033[48;2;65;43;21mcolour\\033[0m "
    "\\033]8;;https://example.org/a?b=c\\033\\\\link\\033]8;;\\033\\\\ '; "
    "printf '\\033[?1003h\\033[?1006h\\033[?2004h\\033[?1004h\\033[=15;1u\\033]52;c;aGVsbG8=\\033\\\\ready'; exec cat -v"
)


@contextmanager
def attached(name: str, rows: int, cols: int) -> Iterator[int]:
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        os.execvp(sys.executable, [*WSH.split(), "attach", name])
    try:
        yield fd
        os.write(fd, b"\x1b[92;5u\x1b[92;5:3u\x1b[100;1:1u")  # as a terminal with the kitty protocol sends it
        read_until(fd, lambda seen: b"[detached" in seen, b"")
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


@pytest.mark.parametrize(("rows", "cols"), [(24, 80), (40, 120), (9, 60)], ids=["same", "larger", "smaller"])
def test_colours_links_modes_and_keys_pass(server: RunningServer, rows: int, cols: int) -> None:
    make(server, "through", PROGRAM, rows=23, cols=80)
    with attached("through", rows, cols) as fd:
        wanted = [b"\x1b[?1003h", b"\x1b[?1006h", b"\x1b[?2004h", b"\x1b[?1004h", b"\x1b[=15;1u", b"ready"]
        shown = read_until(fd, lambda seen: all(each in seen for each in wanted), b"")
        assert b"38;2;12;34;56" in shown and b"48;2;65;43;21" in shown
        assert b"https://example.org/a?b=c" in shown
        # focus, a report of the mouse, a paste with the prefix in it, a key with its release
        os.write(fd, b"\x1b[I\x1b[<35;5;1M\x1b[200~a\x1cb\x1b[201~\x1b[97;5u\x1b[97;5:3u")
        passed = b"^[[I^[[<35;5;1M^[[200~a^\\b^[[201~^[[97;5u^[[97;5:3u"
        got = read_until(fd, lambda seen: b"[97;5:3u" in seen, b"")
        # A smaller terminal shows a part of it.
        assert passed in got or cols < 80 and b"[97;5:3u" in got


def test_what_a_program_puts_on_the_clipboard_reaches_the_terminal(server: RunningServer) -> None:
    make(
        server,
        "clip",
        "stty raw -echo; printf ready; while :; do head -c1 >/dev/null; printf '\\033]52;c;aGVsbG8=\\007'; done",
    )
    with attached("clip", 24, 80) as fd:
        read_until(fd, lambda seen: b"ready" in seen, b"")
        os.write(fd, b"x")
        shown = read_until(fd, lambda seen: b"\x1b]52;c;" in seen, b"")
        assert base64.b64decode(shown.partition(b"\x1b]52;c;")[2].partition(b"\x1b\\")[0]) == b"hello"


def test_the_mouse_is_where_it_is_in_the_part_that_is_shown(server: RunningServer) -> None:
    make(
        server,
        "moved",
        "stty raw -echo; printf '\\033[?1000h\\033[?1006h\\033[30;1Hready '; exec cat -v",
        rows=30,
        cols=100,
    )
    with attached("moved", 11, 60) as fd:
        read_until(fd, lambda seen: b"ready" in seen and b"\x1b[?1000h" in seen, b"")
        os.write(fd, b"\x1b[<0;3;2M")  # the second of ten rows, of which the last is row 30
        read_until(fd, lambda seen: b"^[[<0;3;22M" in seen, b"")
        info = server.get("/sessions/moved")
        assert (info["rows"], info["cols"]) == (30, 100), "the mouse is no typing"


def test_with_the_setting_the_wheel_opens_earlier_lines_and_leaves_them_again(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSH_ATTACH_MOUSE", "true")
    make(server, "wheel", "seq -f 'line %g' 100; printf ready; exec cat -v", rows=11, cols=80)
    with attached("wheel", 12, 80) as fd:
        read_until(fd, lambda seen: b"ready" in seen and b"\x1b[?1000h" in seen and b"\x1b[?1006h" in seen, b"")
        os.write(fd, b"\x1b[<64;5;5M")
        read_until(fd, lambda seen: b"q back" in seen, b"")
        os.write(fd, b"\x1b[<64;5;5M" * 4)
        read_until(fd, lambda seen: b"line 80" in seen, b"")
        os.write(fd, b"\x1b[<65;5;5M" * 6)
        read_until(fd, lambda seen: "wheel ·".encode() in seen, b"")
        os.write(fd, b"\x1b[<0;5;5Mtyped\x1b[<0;5;5m")
        shown = read_until(fd, lambda seen: b"typed" in seen, b"")
        assert b"<0;5;5" not in shown, "the program does not want the mouse"
        assert server.get("/sessions/wheel")["rows"] == 11
