"""Two machines on one: the desktop in one network namespace, the server in another, a cable between them.

    python -m tests.contract.topology FOLDER

Lays the cable, starts a scripted desktop on one side and, through the container's own entrypoint, a contract on the
other; pulls the cable, kills the desktop, and prints every answer as a line of JSON. Needs to be root in its namespace;
the test gives it one of its own where the user is not root.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
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
    command = [sys.executable, "-m", "tests.bridge.scripted", "--host", "10.213.0.1", "--port", str(PORT)]
    desktop = wire.inside(
        wire.desk,
        *command,
        env={**os.environ, "PM_INTERACTIVE_TERMINAL_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
    )
    assert desktop.stdout is not None
    assert desktop.stdout.readline().startswith("listening")
    return desktop


def main(folder: Path) -> None:
    environ = {
        **os.environ,
        "PM_RUNNING_IN_CONTAINER": "true",
        "PM_TERM_ADAPTER_MODE": "auto",
        "PM_INTERACTIVE_TERMINAL_TOKEN": TOKEN,
        "PM_INTERACTIVE_TERMINAL_HOST_PORT": str(PORT),
        "PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS": "1500",
        "PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS": "20000",
    }
    with Wire(folder) as wire:
        if wire.alias is not None:
            environ["PM_INTERACTIVE_TERMINAL_HOST_ALIAS"] = wire.alias
        desktop = start_desktop(wire)
        server = wire.inside(
            wire.cont,
            str(REPOSITORY / "container" / "entrypoint.sh"),
            sys.executable,
            "-m",
            "tests.contract.topology",
            "--serve",
            str(folder),
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert server.stdin is not None and server.stdout is not None
        stdin, stdout = server.stdin, server.stdout

        def ask(*argv: str, until_it_works: bool = False) -> None:
            deadline = time.monotonic() + 15
            while True:
                stdin.write(json.dumps(["interactive", *argv]) + "\n")
                stdin.flush()
                line = stdout.readline()
                if not until_it_works or json.loads(line)["success"] or time.monotonic() > deadline:
                    break
            print(line, end="", flush=True)

        try:
            ask("hostname", "-I")
            running = folder / "running"
            stdin.write(json.dumps(["interactive", "sh", "-c", f"touch {running}; sleep 100"]) + "\n")
            stdin.flush()
            deadline = time.monotonic() + 20
            while not running.exists():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            wire.cable("down")
            print(stdout.readline(), end="", flush=True)
            ask("true")
            wire.cable("up")
            ask("true", until_it_works=True)  # a link needs a moment to carry again
            desktop.kill()
            desktop.wait()
            ask("true")
            desktop = start_desktop(wire)
            ask("echo", "back")
        finally:
            stdin.close()
            for process in (server, desktop):
                try:
                    process.wait(2 if process is server else 0.01)
                except subprocess.TimeoutExpired:
                    process.terminate()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


async def serve(folder: Path) -> None:
    """The server's side: one request a line from stdin, one answer a line to stdout."""
    from tests.contract.harness import opened

    environ = {key: value for key, value in os.environ.items() if key.startswith(("PM_", "WSH_"))}
    async with opened(folder, environ=environ) as world:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            _, *argv = json.loads(line)
            answer = await world.interactive(*argv)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        asyncio.run(serve(Path(sys.argv[2])))
    else:
        main(Path(sys.argv[1]))
