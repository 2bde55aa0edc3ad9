"""A persistent server that is killed comes back as itself: by whoever looks after it, or by a client that waited for that."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.host import StdioHost, structured
from tests.support.serving import find_processes
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import WarmPopen, run_warm
from wsh.wire.system.place import Places


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def read_record(places: Places) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(places.runtime_info.read_text())
    except (OSError, ValueError):
        return {}
    return found


def answers(places: Places) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(str(places.socket))
        except OSError:
            return False
    return True


class Supervisor:
    """Starts `wsh server` again whenever it has ended, after a pause, as a service manager does."""

    def __init__(self, port: int, pause_s: float) -> None:
        self.statuses: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [sys.executable, "-m", "wsh.cli.main", "server", "--bind", f"127.0.0.1:{port}"]
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            self.process = WarmPopen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
            )
            self.statuses.append(self.process.wait())
            self._ended.wait(self._pause_s)

    def end(self) -> None:
        self._ended.set()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
        self._thread.join(HANG_S)


@contextmanager
def supervised(places: Places, port: int, pause_s: float) -> Iterator[Supervisor]:
    supervisor = Supervisor(port, pause_s)
    try:
        wait_until(lambda: answers(places), "the first start")
        yield supervisor
    finally:
        supervisor.end()


@pytest.fixture
def here(places: Places) -> Iterator[Places]:
    yield places
    for process in find_processes(places):
        process.kill()


def kill_server(places: Places) -> int:
    pid = int(read_record(places)["pid"])
    os.kill(pid, signal.SIGKILL)
    return pid


def is_new(places: Places, old: int) -> bool:
    return read_record(places).get("pid") not in (None, old) and answers(places)


def test_clients_leave_the_restart_of_a_persistent_server_to_its_supervisor(here: Places) -> None:
    port = free_port()
    with supervised(here, port, pause_s=1.5) as supervisor, StdioHost() as host:
        host.initialize()
        name = structured(host.call("wsh_create_session", {"command": "bash --norc"}))["session"]
        structured(host.call("wsh_run_command", {"session": name, "input": "kept=yes"}))
        for _ in range(2):
            old = kill_server(here)
            tagged = run_warm([sys.executable, "-m", "wsh.cli.main", "tag", name, "x"], timeout=HANG_S)
            assert tagged.returncode == 0, tagged
            arguments = {"session": name, "input": "echo $kept", "format": "plain"}
            assert structured(host.call("wsh_run_command", arguments))["output"] == "yes"
            assert is_new(here, old)
            record = read_record(here)
            assert (record["port"], record["ephemeral"]) == (port, False), record
            assert supervisor.process is not None and record["pid"] == supervisor.process.pid
        assert set(supervisor.statuses) == {-signal.SIGKILL}, "no start of the supervisor failed"


def test_without_a_supervisor_a_client_starts_one_as_it_was_which_gives_way_to_the_next(
    here: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WSH_CLIENT_RESTART_WAIT_S", "0.3")
    port = free_port()
    settings = tmp_path / "other.toml"
    settings.write_text("[server]\nmax_sessions = 7\n")
    command = [sys.executable, "-m", "wsh.cli.main", "server", f"--bind=127.0.0.1:{port}", f"--config={settings}"]
    first = WarmPopen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: answers(here), "the first server")
    with StdioHost() as host:
        host.initialize()
        name = structured(host.call("wsh_create_session", {"command": "bash --norc"}))["session"]
        first.kill()
        first.wait()
        assert name in str(structured(host.call("wsh_list_sessions")))
        record = read_record(here)
        assert record["pid"] != first.pid and record["port"] == port, record
        assert (record["ephemeral"], record["stand_in"]) == (False, True), record
        assert f"--config={settings}" in record["arguments"]
        # who looks after the server comes back late, and is not turned away
        second = WarmPopen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            wait_until(lambda: read_record(here).get("pid") == second.pid and answers(here), "the second server")
            assert read_record(here)["port"] == port
            assert name in str(structured(host.call("wsh_list_sessions")))
            assert second.poll() is None
        finally:
            second.terminate()
            second.wait(HANG_S)


def test_a_server_takes_over_from_an_ephemeral_one_with_all_its_sessions(here: Places) -> None:
    with StdioHost(env={"WSH_SERVER_BIND": "127.0.0.1:0"}) as host:
        host.initialize()
        names = [structured(host.call("wsh_create_session", {"command": "bash --norc"}))["session"] for _ in range(3)]
        structured(host.call("wsh_run_command", {"session": names[0], "input": "kept=yes"}))
        old = read_record(here)
        assert old["ephemeral"]
        port = free_port()
        command = [sys.executable, "-m", "wsh.cli.main", "server", f"--bind=127.0.0.1:{port}"]
        server = WarmPopen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            wait_until(lambda: is_new(here, old["pid"]), "the new server")
            record = read_record(here)
            assert (record["pid"], record["port"], record["ephemeral"]) == (server.pid, port, False), record
            arguments = {"session": names[0], "input": "echo $kept", "format": "plain"}
            assert structured(host.call("wsh_run_command", arguments))["output"] == "yes"
            listed = str(structured(host.call("wsh_list_sessions")))
            assert all(name in listed for name in names), listed
            # a persistent one does not give way
            third = run_warm(command)
            assert third.returncode == 3 and b"runs already" in third.stderr, third
            assert server.poll() is None
        finally:
            server.terminate()
            server.wait(HANG_S)


def test_a_server_that_is_made_persistent_says_so_where_clients_look(here: Places) -> None:
    with StdioHost(env={"WSH_SERVER_BIND": "127.0.0.1:0"}) as host:
        host.initialize()
        structured(host.call("wsh_list_sessions"))
        assert read_record(here)["ephemeral"]
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(here.socket))
            body = b'{"persistent": true}'
            head = f"PUT /server/persist HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
            sock.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + body)
            assert b" 200 " in sock.recv(4096)
        wait_until(lambda: not read_record(here)["ephemeral"], "the record to change")
