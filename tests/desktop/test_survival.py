"""A display that goes away, a server that restarts, a file that changes: what was there is there again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.support.desktop.window import Asking, Desk, desk, execute, virtual_screen
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import HANG_S, wait_until
from wsh.wire.system.place import Places


def _drawing(window: Desk) -> list[psutil.Process]:
    """The processes of the program that draw."""
    found = []
    for child in psutil.Process(window.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # a zombie has ended, too
            if "wsh.desktop.window.main" in child.cmdline():
                found.append(child)
    return found


@contextmanager
def _screen(number: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["Xvfb", number, "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: Path(f"/tmp/.X11-unix/X{number[1:]}").exists(), "the screen")
        yield process
    finally:
        process.terminate()
        process.wait(HANG_S)


@pytest.fixture
def free_display() -> str:
    """A number that no other screen gets, also while ours is gone: others take the lowest that is free."""
    return f":{1000 + os.getpid() % 50_000}"


def _prompts_after_interrupt(window: Desk) -> bool:
    rows = [row.strip() for row in window.layout()["terminal"]["rows"] if row.strip()]
    interrupted = [number for number, row in enumerate(rows) if "^C" in row]
    return bool(interrupted) and interrupted[-1] < len(rows) - 1


LIVES = """
import itertools, pathlib, signal, sys, time

signal.signal(signal.SIGINT, signal.SIG_DFL)
for number in itertools.count():
    pathlib.Path(sys.argv[1]).write_text(str(number))
    time.sleep(0.05)
"""


def test_requests_and_terminals_outlive_their_display_and_are_shown_again(
    places: Places, free_display: str, tmp_path: Path
) -> None:
    proof = tmp_path / "lives"
    with _screen(free_display) as screen:
        with desk(places, free_display) as window, running_server(places, check_left=False) as server:
            window.press("ctrl+shift+n")
            wait_until(lambda: " – " in window.title(), "a terminal")
            name = window.title().split(" – ")[0]
            # One process: a loop of bash goes on, and heeds no trap, where Ctrl+C comes between two of its programs.
            program = tmp_path / "lives.py"
            program.write_text(LIVES)
            window.enter_command(f"{sys.executable} {program} {proof}")
            wait_until(proof.exists, "the program in the terminal")
            asking = Asking(server, execute("echo", "still here"))
            window.wait_for_pending(1)
            screen.kill()
            screen.wait(HANG_S)
            wait_until(lambda: not _drawing(window), "the window to end with its display")
            assert window.process.poll() is None, "the program stays"
            before = proof.read_text()
            wait_until(lambda: proof.read_text() not in ("", before), "the program to go on without a display")
            late = Asking(server, execute("echo", "asked in the dark"))
            with _screen(free_display):
                window.wait_for_pending(2)
                assert name in window.title() or window.title().startswith("(2)")
                window.press("ctrl+1", "ctrl+Return")
                assert asking.answer()["result"]["stdout"].split() == ["still", "here"]
                window.wait_for_pending(1)
                window.press("ctrl+1", "ctrl+Return")
                assert late.answer()["result"]["stdout"].split() == ["asked", "in", "the", "dark"]
                window.show_terminal(name)
                wait_until(lambda: window.layout()["terminal"].get("has_keyboard"), "the keyboard in the terminal")
                window.press("ctrl+c")
                # Ctrl+C empties the terminal's input, so that what is typed before the next prompt may be lost.
                wait_until(lambda: _prompts_after_interrupt(window), "the prompt", seen=window.layout)
                window.enter(f"echo typed > {proof}")
                wait_until(lambda: proof.read_text() == "typed\n", "typing into the terminal that survived")


def test_a_second_start_on_another_display_brings_the_window_there(places: Places) -> None:
    with virtual_screen() as display, desk(places, display) as window, virtual_screen() as other:
        done = subprocess.run(
            [sys.executable, "-m", "wsh.desktop.main", "--port", "0"],
            env={**os.environ, "DISPLAY": other},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 3
        moved = Desk(window.process, other, places, window.port, window.layout_file)
        wait_until(moved.title, "the window on the other display")
        wait_until(lambda: not window.title(), "the window to leave the first display")


def test_without_a_display_it_says_what_is_missing(places: Places) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-m", "wsh.desktop.main", "--port", "0"],
        env={**environ, "QT_QPA_PLATFORM": "xcb"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 6 and "DISPLAY" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_a_window_that_is_killed_comes_back_with_what_waits(window: Desk, server: RunningServer) -> None:
    asking = Asking(server, execute("echo", "patience"))
    window.wait_for_pending(1)
    (drawing,) = _drawing(window)
    drawing.kill()
    wait_until(lambda: any(other.pid != drawing.pid for other in _drawing(window)), "another window")
    window.wait_for_pending(1)
    window.press("ctrl+Return")
    assert asking.answer()["result"]["stdout"].split() == ["patience"]
    window.wait_for_pending(0)


def test_a_session_of_the_server_is_shown_again_when_its_server_is_back(places: Places, tmp_path: Path) -> None:
    proof = tmp_path / "typed"
    with virtual_screen() as display, desk(places, display) as window:
        with running_server(places, check_left=False) as server:
            body = {"name": "far", "command": "bash --norc", "cwd": str(tmp_path)}
            assert server.request("POST", "/sessions", body).status == 201
            window.show_terminal("far")
            window.enter_command(f"echo before > {proof}")
            wait_until(proof.exists, "what was typed before")
            # Killed, not stopped: the keeper has its sessions, and the next server takes them back.
            server.process.kill()
            server.process.wait(HANG_S)
            with running_server(places, check_left=False) as again:
                _type_again(again, window, proof)


def _type_again(server: RunningServer, window: Desk, proof: Path) -> None:
    wait_until(lambda: server.request("GET", "/sessions/far").status == 200, "the session to be taken back")
    window.show_terminal("far")

    def is_typed() -> bool:
        window.enter(f"echo after > {proof}")
        return proof.read_text() == "after\n"

    wait_until(is_typed, "typing into it again")
    server.request("DELETE", "/sessions/far")
