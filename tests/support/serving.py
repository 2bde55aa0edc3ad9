"""A real server process for a test: on a free port, in folders of its own, gone without a trace at the end.

with running_server(places) as server:
    server.request("GET", "/sessions")
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import WarmPopen
from wsh.wire.system.place import Places
from wsh.wire.system.runtime_path import runtime_folder
from wsh.wire.token_file import TokenFile

_READ_BYTES = 16 * 1024
"""More than most processes have of words or variables."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code."""
        return str(self.json["error"]["code"])


@dataclass
class RunningServer:
    process: subprocess.Popen[bytes]
    places: Places
    url: str
    port: int
    token: str
    output: Path
    """What it printed on stdout and stderr."""
    tls: ssl.SSLContext | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def socket(self) -> Path:
        return self.places.socket

    @property
    def ws_url(self) -> str:
        return "ws" + self.url.removeprefix("http")

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = "",
        timeout: float = HANG_S,
    ) -> Reply:
        """One request over TCP. `body` is bytes as they are, or anything else as JSON; `token` None sends none."""
        sent = dict(headers or {})
        token = self.token if token == "" else token
        if token is not None and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {token}"
        data: bytes | None = None
        if isinstance(body, bytes):
            data = body
        elif body is not None:
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection: http.client.HTTPConnection
        if self.tls is not None:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        except http.client.IncompleteRead as short:
            raise ConnectionResetError("the server ended in the middle of its answer") from short
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        reply = self.request("GET", path)
        assert reply.status == 200, reply
        return reply.json

    def raw(self, data: bytes, timeout: float = HANG_S) -> bytes:
        """Send bytes as they are over TCP and read until the server closes or is silent for 0.5 s after an answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as sock:
            sock.sendall(data)
            return read_answer(sock)

    def stop(self, sig: int = signal.SIGTERM, timeout: float = HANG_S) -> int:
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(timeout)


def read_answer(sock: socket.socket) -> bytes:
    """One HTTP answer with a Content-Length, or everything until the other end closes."""
    received = b""
    while True:
        head, separator, body = received.partition(b"\r\n\r\n")
        if separator:
            lengths = [h.split(b":")[1] for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:")]
            if lengths and len(body) >= int(lengths[0]):
                return received
        part = sock.recv(65536)
        if not part:
            return received
        received += part


def find_processes(places: Places) -> list[psutil.Process]:
    """Live processes of this test: those that name its runtime folder (servers, keepers) and all that they started."""
    # A stand-in for a folder with a long name stands among those of everybody else.
    folder = places.runtime.parent if places.runtime.name == "wsh" else places.runtime
    named, variable = b"\0" + os.fsencode(folder) + b"/", b"\0XDG_RUNTIME_DIR="
    found: dict[int, psutil.Process] = {}
    recorded = _find_recorded(places)
    # This is done for every server of a test, so no more is read of the others than these two files.
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = b"\0" + _read(f"/proc/{pid}/cmdline")
            environ = b"\0" + _read(f"/proc/{pid}/environ")
            given = os.fsdecode(environ.partition(variable)[2].partition(b"\0")[0])
            if (
                named in words
                or pid == recorded
                or (given and str(folder) in (given, runtime_folder({"XDG_RUNTIME_DIR": given}, places.server)))
            ):
                process = psutil.Process(int(pid))
                found[process.pid] = process
                found |= {child.pid: child for child in process.children(recursive=True)}
        except (OSError, psutil.Error):
            continue
    if not found:
        return []
    mine = _line_of(psutil.Process())
    return [process for pid, process in found.items() if pid not in mine and _is_alive(process)]


def _find_recorded(places: Places) -> str:
    """The number of the server that says of itself that it runs there; empty if there is none."""
    try:
        pid = str(json.loads(places.runtime_info.read_bytes())["pid"])
        return pid if b"wsh.cli.main" in _read(f"/proc/{pid}/cmdline").split(b"\0") else ""
    except (OSError, ValueError, KeyError):
        return ""


def _read(path: str) -> bytes:
    """Empty for what the kernel keeps from an ordinary user, such as the environment of a server or a keeper."""
    try:
        fd = os.open(path, os.O_RDONLY)  # half as dear as a file object, for two files of every process
    except PermissionError:
        return b""
    try:
        found = part = os.read(fd, _READ_BYTES)
        while len(part) == _READ_BYTES:
            part = os.read(fd, _READ_BYTES)
            found += part
        return found
    finally:
        os.close(fd)


def _order_of(pid: int) -> tuple[int, int]:
    """Less than that of every process that began later; of one that is gone the greatest."""
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19]), pid
    except (OSError, IndexError):
        return sys.maxsize, pid


def _line_of(process: psutil.Process) -> set[int]:
    """The process and all above it."""
    try:
        return {process.pid, *(parent.pid for parent in process.parents())}
    except psutil.NoSuchProcess:
        return {process.pid}


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def running_server(
    places: Places,
    *args: str,
    environ: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    bind: str | None = "127.0.0.1:0",
    check_left: bool = True,
    expect_alive: bool = False,
    prefix: Sequence[str] = (),
) -> Iterator[RunningServer]:
    """Start `wsh server` and wait for /health. At the end the server, its keeper and their children are ended."""
    server = start_server(places, *args, environ=environ, tls=tls, bind=bind, prefix=prefix)
    began = _order_of(server.process.pid)
    tidy = False
    try:
        yield server
        if expect_alive:
            assert server.process.poll() is None, server.output.read_text()
    finally:
        try:
            tidy = _stop_all(server)
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
            found = find_processes(places)
            before = {process.pid for process in found if _order_of(process.pid) < began}
            found = [process for process in found if not before & _line_of(process)]
            # A viewer or a shell that was told to end may need a moment for it; what nobody told would never end.
            _, left = psutil.wait_procs(found, timeout=HANG_S if tidy and check_left else 0)
            for process in left:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    pass
            # psutil's own wait fails now and then for one of hundreds that end at once (ENOENT of pidfd_open).
            wait_until(lambda: not any(map(_is_alive, left)), "the end of what was killed")
    if tidy and check_left:
        assert not left, f"the end of the server left processes: {left}"
    if check_left:
        assert not places.socket.exists() and not places.runtime_info.exists()


def _stop_all(server: RunningServer) -> bool:
    """End server, keeper and sessions as `wsh stop` does; False if the server was gone already.

    One that a client started in its place is ended as well.
    """
    there = server.process.poll() is None
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(HANG_S)
        try:
            sock.connect(str(server.socket))
            sock.sendall(b"POST /server/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            read_answer(sock)
        except OSError:
            return False
    if there:
        server.process.wait(HANG_S)
    else:
        wait_until(lambda: not server.socket.exists(), "the end of the server's stand-in")
    return there


def start_server(
    places: Places,
    *args: str,
    environ: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    bind: str | None = "127.0.0.1:0",
    prefix: Sequence[str] = (),
) -> RunningServer:
    """A server that the caller ends. `running_server` is the tidy way. `prefix` is a command that executes another."""
    output = places.state.parent.parent / f"server-{time.monotonic_ns()}.log"
    command = [*prefix, sys.executable, "-m", "wsh.cli.main", "server"]
    if bind is not None:
        command += ["--bind", bind]
    env = {**os.environ, "WSH_SERVER": places.server, **(environ or {})}
    with open(output, "wb") as log:
        process = WarmPopen(
            [*command, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
        )

    def info() -> dict[str, Any] | None:
        if process.poll() is not None:
            raise AssertionError(f"the server ended with {process.returncode}:\n{output.read_text()}")
        try:
            found: dict[str, Any] = json.loads(places.runtime_info.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return found if found.get("pid") == process.pid else None

    try:
        wait_until(lambda: info() is not None, "the server's runtime file")
        facts = info()
        assert facts is not None
        server = RunningServer(process, places, facts["url"], int(facts["port"]), "", output, tls)

        def healthy() -> bool:
            try:
                return server.request("GET", "/health", token=None, timeout=HANG_S).status == 200
            except OSError:
                info()  # raises if it has ended
                return False

        wait_until(healthy, "an answer of /health")
        server.token = (environ or {}).get("WSH_TOKEN") or TokenFile(places.tokens).lend_owner()
        return server
    except BaseException:
        process.kill()
        process.wait()
        raise
