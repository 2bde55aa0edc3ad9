"""`wsh attach` in a real terminal multiplexer: what a person would see and type."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.pane import WSH, Pane, make, read_until
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places


@pytest.fixture
def mortal(places: Places, no_supervisor: None) -> Iterator[RunningServer]:
    """A server of its own, for a test that ends it."""
    with running_server(places) as running:
        yield running


def test_a_person_attaches_types_resizes_detaches_and_comes_back(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    make(server, "shared")
    server.request("POST", "/sessions/shared/input", b"echo from an agent\r")
    seen = pane(f"{WSH} attach shared")
    seen.wait(lambda t: "from an agent\n" in t and "shared" in t.splitlines()[-1], "the picture and the status line")
    seen.type("echo typed $((40+2))", "Enter")
    seen.wait(lambda t: "typed 42" in t, "the echo of what was typed")
    seen.resize(12, 60)
    # A terminal tells its size by a signal and keys by its line: keys that are typed at once may come first.
    wait_until(lambda: server.get("/sessions/shared")["rows"] == 11, "the new size, less the status line")
    seen.type("stty size", "Enter")
    seen.wait(lambda t: "11 60" in t, "the new size in the program")
    seen.type("C-\\", "C-\\")
    seen.wait(lambda t: "[detached · shared]" in t and "status 0" in t, "the way out")
    assert server.get("/sessions/shared")["clients"] == 0
    again = pane(f"{WSH} attach --scrollback 100 shared")
    again.wait(lambda t: "11 60" in t, "the same screen again")


def test_an_overlay_is_drawn_over_vim_and_removed_without_a_trace(
    server: RunningServer, pane: Callable[..., Pane], tmp_path: Path
) -> None:
    file = tmp_path / "text.txt"
    file.write_text("".join(f"line {n} of the file\n" for n in range(1, 41)))
    make(server, "vim", f"vim -u NONE -N {file}", rows=23)
    seen = pane(f"{WSH} attach vim")
    before = seen.wait(
        lambda t: t.startswith("line 1 of") and "line 22 of" in t and "line 23 of" not in t, "vim's size"
    )
    element = {
        "x": 10,
        "y": 3,
        "width": 20,
        "height": 4,
        "spans": [{"text": "LOOK HERE\nplease"}],
        "background": "blue",
    }
    made = server.request("POST", "/sessions/vim/overlay", element).json
    shown = seen.wait(lambda t: "LOOK HERE" in t, "the overlay")
    assert shown.splitlines()[3].startswith("line 4 of LOOK HERE")
    server.request("DELETE", f"/sessions/vim/overlay/{made['id']}")
    after = seen.wait(lambda t: "LOOK HERE" not in t, "the overlay's end")
    assert after == before


def test_a_panel_takes_rows_from_htop_and_gives_them_back(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "top", "htop -d 100", rows=23)
    seen = pane(f"{WSH} attach top")
    seen.wait(lambda t: "F10" in t.splitlines()[22], "htop on the whole screen")
    panel = {"position": "bottom", "height": 2, "spans": [{"text": "A PANEL BELOW"}]}
    made = server.request("POST", "/sessions/top/panel", panel).json
    text = seen.wait(lambda t: "A PANEL BELOW" in t and "F10" in t.splitlines()[20], "htop made room")
    assert "A PANEL BELOW" in text.splitlines()[21]
    server.request("DELETE", f"/sessions/top/panel/{made['id']}")
    seen.wait(lambda t: "F10" in t.splitlines()[22], "htop on the whole screen again")


def test_what_scrolled_off_is_in_the_terminals_own_scrollback(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "long")
    seen = pane(f"{WSH} attach long")
    seen.wait(lambda t: "$" in t, "the prompt")
    seen.type("seq 1 300", "Enter")
    seen.wait(lambda t: "\n300" in t, "the last line")

    def numbers() -> list[str]:
        return [line.strip() for line in seen.text(history=True).splitlines() if line.strip().isdigit()]

    # The picture comes first; what scrolled off follows in pieces.
    seen.wait(lambda _: numbers() == [str(n) for n in range(1, 301)], "every line, in order")


def test_looking_puts_no_copies_of_the_screen_into_the_terminals_scrollback(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    make(server, "calm")
    seen = pane(f"{WSH} attach calm")
    seen.wait(lambda t: "$" in t, "the prompt")
    seen.type("echo fi''rst; echo sec''ond", "Enter")
    seen.wait(lambda t: "\nsecond\n$" in t, "some lines")

    def history() -> int:
        return int(seen._run("display-message", "-p", "#{history_size}"))

    before = history()
    for rows, cols in ((22, 70), (20, 60), (24, 80)):
        seen.resize(rows, cols)
        seen.wait(lambda t, rows=rows: len(t.splitlines()) == rows and "calm" in t.splitlines()[-1], "the new size")  # type: ignore[misc]
    for _ in range(2):
        seen.type("vim -u NONE -N", "Enter")
        seen.wait(lambda t: "~" in t, "vim")
        seen.type(":q", "Enter")
        seen.wait(lambda t: "~" not in t and "second" in t, "the shell again")
    assert history() == before


def test_the_view_survives_the_death_of_the_server(mortal: RunningServer, pane: Callable[..., Pane]) -> None:
    make(mortal, "survivor")
    seen = pane(f"{WSH} attach survivor")
    seen.wait(lambda t: "$" in t, "the prompt")
    seen.type("echo before", "Enter")
    seen.wait(lambda t: "\nbefore" in t, "the first echo")
    mortal.process.kill()
    mortal.process.wait()

    # The viewer itself brings a new server up, which takes the session over.
    looks = itertools.count()

    def is_typed() -> bool:
        if next(looks) % 50 == 0:
            seen.type("echo after $((1+1))", "Enter")
        return "after 2" in seen.text()

    wait_until(is_typed, "typing into the session again", seen=seen.text)
    # What was typed while it was away may have pushed it up.
    wait_until(lambda: "\nbefore" in seen.text(history=True), "the first echo again", seen=lambda: seen.text(True))
    run_warm([*WSH.split(), "stop"], check=True)
    seen.wait(lambda t: "[survivor: the server was stopped" in t and "status 0" in t, "the end and its reason")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_when_the_viewer_is_told_to_end(
    server: RunningServer, pane: Callable[..., Pane], tmp_path: Path, sig: signal.Signals
) -> None:
    make(server, "held", "vim -u NONE -N")
    note = tmp_path / "pid"
    seen = pane(f"sh -c 'echo $$ > {note}; exec {WSH} attach held'; stty -a | tr ' ' '\\n' | grep -x -e echo -e icanon")
    seen.wait(lambda t: "~" in t, "vim")
    os.kill(int(note.read_text()), sig)
    text = seen.wait(lambda t: "status" in t, "the end")
    assert "[detached · held]" in text
    assert "icanon" in text and "\necho\n" in text and "~\n" not in text
    assert server.get("/sessions/held")["running"]


def test_attaching_to_nothing_says_so_and_leaves_the_terminal_alone(server: RunningServer) -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.executable, [*WSH.split(), "attach", "nobody"])
    shown = read_until(fd, lambda seen: b"There is no session named 'nobody'" in seen and seen.endswith(b"\n"), b"")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(fd)
    assert b"\x1b" not in shown and shown.lstrip() == shown, "nothing but the error"


def test_title_and_keyboard_of_the_terminal_are_given_back(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "titled", "printf '\\033]2;theirs\\033\\\\\\033[6 qready'; exec cat")
    seen = pane(rf"printf '\033]2;mine\033\\'; {WSH} attach titled")

    def title() -> str:
        return seen._run("display-message", "-p", "#{pane_title}").strip()

    seen.wait(lambda t: "ready" in t and title() == "theirs", "the session and its title")
    seen.type("C-\\", "d")
    seen.wait(lambda t: "status 0" in t, "the way out")
    assert title() == "mine"
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.executable, [*WSH.split(), "attach", "titled"])
    try:
        shown = read_until(fd, lambda seen: b"ready" in seen and b"\x1b[6 q" in seen, b"")
        assert shown.index(b"\x1b[22;0t") < shown.index(b"theirs") and b"\x1b[>0u" in shown
        os.write(fd, b"\x1c\x1c")
        shown = read_until(fd, lambda seen: b"[detached" in seen, b"")
        assert (
            b"\x1b[<u" in shown and b"\x1b[23;0t" in shown and shown.rindex(b"\x1b[0 q") > shown.rindex(b"\x1b[?1049l")
        )
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def test_without_a_terminal_there_is_nothing_to_attach_to(server: RunningServer) -> None:
    done = run_warm([*WSH.split(), "attach", "x"], stdin=subprocess.DEVNULL, text=True)
    assert done.returncode == 2 and "needs a terminal" in done.stderr


def test_wsh_alone_opens_a_shell_here_and_its_exit_status_comes_back(
    server: RunningServer, pane: Callable[..., Pane], tmp_path: Path
) -> None:
    seen = pane(f"cd {tmp_path} && PS1='> ' FLAVOUR=vanilla SHELL=/bin/sh {WSH}")
    seen.wait(lambda t: ">" in t, "the prompt")
    seen.type("pwd; echo $FLAVOUR; exit 7", "Enter")
    text = seen.wait(lambda t: "status 7" in t, "the status of the shell")
    assert str(tmp_path) in seen.text(history=True) + text


def test_modes_of_the_program_reach_the_terminal_and_its_reports_reach_the_program(server: RunningServer) -> None:
    modes = ["?1003h", "?1006h", "?2004h", "?1004h", "=5;1u"]
    make(
        server, "modes", f"sh -c \"stty raw -echo; printf '{''.join(chr(92) + 'e[' + m for m in modes)}'; exec cat -v\""
    )
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.executable, [*WSH.split(), "attach", "--no-status", "modes"])
    try:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        shown = read_until(fd, lambda seen: all(b"\x1b[" + m.encode() in seen for m in modes), b"")
        reports = b"\x1b[<35;5;3M\x1b[200~a\x1cb\x1b[201~\x1b[I\x1b[97;5u"
        os.write(fd, reports)
        wanted = b"^[[<35;5;3M^[[200~a^\\b^[[201~^[[I^[[97;5u"
        # What the program answers may come in two pictures, with the movements of the cursor between them.
        shown = read_until(fd, lambda seen: wanted in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen), b"")
        os.write(fd, b"\x1b[92;5u\x1b[92;5:3u\x1b[92;5u")
        shown = read_until(fd, lambda seen: b"detached" in seen, b"")
        for off in (b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?1004l", b"\x1b[=0;1u"):
            assert off in shown
        assert b"keys captured" not in shown
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def test_what_was_on_the_terminal_stays_in_its_scrollback_and_the_shell_goes_on_below_the_picture(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    make(server, "short")
    seen = pane(f"echo was here before; {WSH} attach short")
    seen.wait(lambda t: "$" in t and "short ·" in t, "the prompt")
    assert "was here before" not in seen.text()
    seen.type("echo in the session", "Enter")
    seen.wait(lambda t: "\nin the session" in t, "the echo")
    server.request("POST", "/sessions/short/detach")
    text = seen.wait(lambda t: "status 0" in t, "the end")
    assert [line for line in text.splitlines() if line] == [
        "$ echo in the session",
        "in the session",
        "$",
        "[detached · short]",
        "status 0",
    ]
    assert "was here before" in seen.text(history=True)
