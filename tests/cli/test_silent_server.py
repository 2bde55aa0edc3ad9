"""A server that runs and does not answer, as one that was stopped: commands say so within a deadline."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.pane import WSH, read_until
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import run_warm
from wsh.cli.request import call
from wsh.wire.error import ServerSilent
from wsh.wire.system.place import Places


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return run_warm([sys.executable, "-m", "wsh.cli.main", *words], text=True, timeout=HANG_S)


@pytest.fixture
def stopped(places: Places) -> Iterator[RunningServer]:
    with running_server(places, check_left=False) as server:
        server.request("POST", "/sessions", {"name": "kept", "command": "sleep 600"})
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                os.kill(server.process.pid, signal.SIGCONT)


@pytest.mark.usefixtures("no_supervisor")
def test_a_stopped_server_does_not_hold_commands(stopped: RunningServer) -> None:
    pid = stopped.process.pid
    asked = [["status"], ["list"], ["screen", "kept"], ["stop", "--keep"], ["doctor", "--json"]]
    with ThreadPoolExecutor(len(asked)) as pool:
        *others, doctor = pool.map(lambda words: run(*words), asked)
    for words, done in zip(asked, others, strict=False):
        assert done.returncode == 6, done
        assert f"The server (pid {pid}) does not answer." in done.stderr, words
        assert f"`kill -9 {pid}`" in done.stderr and "sessions go on" in done.stderr, words
    found = [one for one in json.loads(doctor.stdout) if "does not answer" in one["what"]]
    assert doctor.returncode == 1 and found[0]["state"] == "wrong" and str(pid) in found[0]["advice"], doctor
    os.kill(pid, signal.SIGCONT)
    assert "kept" in run("list").stdout


@pytest.mark.usefixtures("no_supervisor")
def test_the_sessions_of_a_stopped_server_are_ended_through_their_keeper(stopped: RunningServer) -> None:
    pid = stopped.process.pid
    done = run("stop")
    assert done.returncode == 6, done
    assert f"(pid {pid}) does not answer. 1 sessions were ended through their keeper." in done.stderr
    assert f"`kill -9 {pid}` ends it." in done.stderr and "go on" not in done.stderr
    os.kill(pid, signal.SIGKILL)
    stopped.process.wait(HANG_S)
    assert "No server runs." in run("stop").stdout


def attach_to(name: str) -> tuple[int, int]:
    """`wsh attach` on a terminal of its own: its process and the other end of that terminal. It is in raw mode on return."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.executable, [*WSH.split(), "attach", "--json", name])
    wait_until(lambda: not termios.tcgetattr(fd)[3] & termios.ICANON, "the terminal in raw mode")
    return pid, fd


@pytest.mark.usefixtures("stopped", "no_supervisor")
def test_a_stopped_server_holds_no_terminal() -> None:
    pid, fd = attach_to("kept")
    try:
        shown = read_until(fd, lambda seen: b'"server_silent"' in seen, b"")
        assert b"\x1b" not in shown, "nothing was drawn"
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
    finally:
        os.close(fd)


def test_a_person_may_leave_before_a_server_that_is_healthy_lets_them_in(places: Places) -> None:
    places.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.socket))
        listener.listen()
        held: list[socket.socket] = []

        def serve() -> None:
            """Answers nothing but questions about its health."""
            while True:
                try:
                    held.append(listener.accept()[0])
                    if b"/health" in held[-1].recv(65536):
                        held[-1].sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                except OSError:
                    return

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        pid, fd = attach_to("slow")
        try:
            os.write(fd, b"ls\r\x1c\x1c")
            read_until(fd, lambda seen: b'"reason": "detached"' in seen, b"")
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        finally:
            os.close(fd)
            listener.shutdown(socket.SHUT_RDWR)
            server.join(HANG_S)
            for one in held:
                one.close()


def test_a_server_that_is_healthy_may_take_its_time(places: Places) -> None:
    places.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.socket))
        listener.listen()

        def serve() -> None:
            """Answers the first request after two signs of health, and nobody afterwards."""
            slow, _ = listener.accept()
            with slow:
                asked.append(slow.recv(65536))
                for _ in range(2):
                    probe, _ = listener.accept()
                    with probe:
                        asked.append(probe.recv(65536))
                        probe.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                slow.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        assert call("GET", "/slow", start=False, answer_s=0.4) == {}
        server.join(HANG_S)
        assert [one.split()[1] for one in asked] == [b"/slow", b"/health", b"/health"]
        with pytest.raises(ServerSilent):
            call("GET", "/silent", start=False, answer_s=0.1)


def test_a_server_that_accepts_nobody_is_silent_too(places: Places) -> None:
    places.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.socket))
        listener.listen(0)
        waiting: list[socket.socket] = []
        try:
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(str(places.socket))
        except BlockingIOError:
            pass
        with pytest.raises(ServerSilent):
            call("GET", "/silent", start=False, answer_s=0.1)
        for one in waiting:
            one.close()
