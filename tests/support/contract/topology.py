"""Two machines on one: the desktop in one network namespace, the server in another, a cable between them.

    python -m tests.support.contract.topology FOLDER

Lays the cable, starts a scripted desktop on one side and, through the container's own entrypoint, a whole server on the
other; pulls the cable, kills the desktop, and prints every answer as a line of JSON. Needs to be root in its namespace;
the test gives it one of its own where the user is not root.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.waiting import HANG_S, wait_until
from wsh.wire.system.place import find_places

REPOSITORY = Path(__file__).parents[3]
PORT = 45459
TOKEN = "token-of-the-desk"


def sh(*command: str) -> None:
    subprocess.run(command, check=True)


class Wire:
    """`desk` and `cont`, 10.213.0.1 and 10.213.0.2, and a hosts file that knows the alias."""

    def __init__(self, folder: Path) -> None:
        tag = secrets.token_hex(3)
        self.desk, self.cont = f"desk{tag}", f"cont{tag}"
        self.ends = (f"d{tag}", f"c{tag}")
        self.hosts = Path("/etc/netns") / self.cont
        self.alias: str | None = None
        self.folder = folder

    def __enter__(self) -> Wire:
        if not os.access("/run", os.W_OK):
            sh("mount", "-t", "tmpfs", "tmpfs", "/run")
        for name in (self.desk, self.cont):
            sh("ip", "netns", "add", name)
        first, second = self.ends
        sh("ip", "link", "add", first, "type", "veth", "peer", "name", second)
        for end, name, address in ((first, self.desk, "10.213.0.1/24"), (second, self.cont, "10.213.0.2/24")):
            sh("ip", "link", "set", end, "netns", name)
            sh("ip", "-n", name, "address", "add", address, "dev", end)
            sh("ip", "-n", name, "link", "set", end, "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")
        try:
            self.hosts.mkdir(parents=True)
            (self.hosts / "hosts").write_text("127.0.0.1 localhost\n10.213.0.1 host.containers.internal\n")
        except PermissionError:
            self.alias = "10.213.0.1"  # not root of the machine: no hosts file, so the alias is the address
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.desk, self.cont):
            subprocess.run(["ip", "netns", "del", name], check=False)
        if self.alias is None:
            (self.hosts / "hosts").unlink(missing_ok=True)
            self.hosts.rmdir()

    def cable(self, state: str) -> None:
        sh("ip", "-n", self.desk, "link", "set", self.ends[0], state)

    def inside(self, name: str, *command: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(["ip", "netns", "exec", name, *command], text=True, cwd=REPOSITORY, **options)


def start_desktop(wire: Wire) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.bridge.scripted", "--host", "10.213.0.1", "--port", str(PORT)]
    desktop = wire.inside(
        wire.desk,
        *command,
        env={**os.environ, "PM_INTERACTIVE_TERMINAL_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
    )
    assert desktop.stdout is not None
    assert desktop.stdout.readline().startswith("listening")
    return desktop


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the server's unix socket: files are shared between the namespaces, networks are not."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=4 * HANG_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(4 * HANG_S)
        self.sock.connect(str(self.path))


def post(path: Path, body: dict[str, Any]) -> dict[str, Any]:
    connection = UnixConnection(path)
    try:
        connection.request("POST", "/terminal", json.dumps(body), {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer
    finally:
        connection.close()


def start_server(
    wire: Wire, folder: Path, *, connect_ms: int = 5000, request_ms: int = 20_000
) -> tuple[subprocess.Popen[str], Path]:
    """`wsh server` as the container starts it: through its entrypoint, with its variables."""
    environ = {
        **os.environ,
        "PM_RUNNING_IN_CONTAINER": "true",
        "PM_TERM_ADAPTER_MODE": "auto",
        "PM_INTERACTIVE_TERMINAL_TOKEN": TOKEN,
        "PM_INTERACTIVE_TERMINAL_HOST_PORT": str(PORT),
        "PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": str(connect_ms),
        "PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS": str(request_ms),
    }
    if wire.alias is not None:
        environ["PM_INTERACTIVE_TERMINAL_HOST_ALIAS"] = wire.alias
    for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        (folder / variable).mkdir(mode=0o700)
        environ[variable] = str(folder / variable)
    server = wire.inside(
        wire.cont,
        str(REPOSITORY / "container" / "entrypoint.sh"),
        sys.executable,
        "-m",
        "wsh.cli.main",
        "server",
        "--bind",
        "127.0.0.1:0",
        env=environ,
        stdout=subprocess.DEVNULL,
    )
    path = find_places(environ).socket
    wait_until(lambda: answers(path), "the server's socket")
    return server, path


def answers(path: Path) -> bool:
    """Whether somebody listens there; the file alone comes earlier."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def main(folder: Path) -> None:
    with Wire(folder) as wire:
        desktop = start_desktop(wire)
        server, path = start_server(wire, folder)

        def ask(*argv: str, until_it_works: bool = False) -> None:
            command, *args = argv
            body = {
                "action": "execute",
                "invocation": {"mode": "interactive", "intent": "execute_command"},
                "execution": {"command": command, "args": args},
            }
            deadline = time.monotonic() + HANG_S
            while True:
                answer = post(path, body)
                if not until_it_works or answer["success"] or time.monotonic() > deadline:
                    break
            print(json.dumps(answer), flush=True)

        try:
            ask("hostname", "-I")
            running = folder / "running"
            with ThreadPoolExecutor() as threads:
                cut = threads.submit(ask, "sh", "-c", f"touch {running}; sleep 100")
                wait_until(running.exists, "the command")
                wire.cable("down")
                cut.result()
            ask("true")
            wire.cable("up")
            ask("true", until_it_works=True)  # a link needs a moment to carry again
            desktop.kill()
            desktop.wait()
            ask("true")
            assert desktop.stdout is not None
            desktop.stdout.close()
            desktop = start_desktop(wire)
            ask("echo", "back")
        finally:
            for process in (server, desktop):
                process.terminate()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
