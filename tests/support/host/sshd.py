"""A real sshd for a test: Debian's, as the user who runs the tests, with keys of its own, on a free port of loopback.

Each has folders of its own for wsh, so that several stand for several machines. The server there is whatever `wsh relay` starts. That one is forked, not
executed, unless a test wants the installed one.
"""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.host.far_start import far_starts
from tests.support.serving import find_processes
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import WarmPopen, _read_at_start, run_warm
from wsh.wire.system.place import Places, find_places

SSHD = "/usr/sbin/sshd"


@dataclass
class Sshd:
    folder: Path
    port: int
    options: tuple[str, ...]
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    server: subprocess.Popen[bytes] | None = None
    """One that was started before anybody asked for it."""

    @property
    def places(self) -> Places:
        return find_places(self.environ)

    @property
    def programs(self) -> Path:
        """The first folder that is searched for programs there. It need not exist."""
        return self.folder / "bin"

    def start(self) -> None:
        words = [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        with (self.folder / "sshd.log").open("ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._listens, f"sshd, which said {(self.folder / 'sshd.log').read_text()[-2000:]}")

    def start_server(self) -> None:
        """A server as `wsh relay` would start it, for tests that are not about that: this one is there sooner."""
        with (self.folder / "server.log").open("ab") as log:
            self.server = WarmPopen(
                [sys.executable, "-m", "wsh.cli.main", "server", "--ephemeral", "--name", self.places.server],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, **self.environ},
                start_new_session=True,
            )
        wait_until(self.places.socket.exists, "the server of that machine")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def list_connections(self) -> list[psutil.Process]:
        """The processes that serve connections now."""
        if self.process is None:
            return []
        try:
            return [
                child for child in psutil.Process(self.process.pid).children(recursive=True) if "sshd" in child.name()
            ]
        except psutil.NoSuchProcess:
            return []

    def cut(self) -> int:
        """End every connection at once, as a network would; says how many there were."""
        found = self.list_connections()
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass
        return len(found)

    def stop(self) -> None:
        """No new connections, and the end of those that are there."""
        if self.process is not None:
            connections = self.list_connections()
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(HANG_S)
            self.process = None
            for process in connections:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    pass


@dataclass(frozen=True)
class SshNet:
    """Machines by name, and the words that ssh is called with to reach them."""

    machines: dict[str, Sshd]
    ssh: list[str]


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


@contextmanager
def ssh_net(
    folder: Path,
    names: Sequence[str],
    *,
    options: Sequence[str] = (),
    path: str | None = None,
    environ: Mapping[str, str] | None = None,
    installed: bool = False,
) -> Iterator[SshNet]:
    """Machines of these names; each but the first is reached through the one before it, by ProxyJump.

    With `installed`, or where PATH is another one, they execute the `wsh` that they have; else it is forked.
    """
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd of the superuser does not start without
    folder.chmod(0o700)
    _make_key(folder / "user")
    (folder / "authorized_keys").write_bytes((folder / "user.pub").read_bytes())
    user = getpass.getuser()
    config, known = [], []
    machines: dict[str, Sshd] = {}
    quick = path is None and not installed
    own = {**(_read_at_start(os.environ) if quick else {}), **(environ or {})}
    for number, name in enumerate(names):
        machine = _make_machine(folder / name, folder, options, path, own)
        machines[name] = machine
        host_key = (machine.folder / "host.pub").read_text().split()
        known.append(f"[127.0.0.1]:{machine.port} {host_key[0]} {host_key[1]}\n")
        config.append(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {machine.port}\n  User {user}\n"
            f"  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder / 'known_hosts'}\n"
            "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
            "  KexAlgorithms curve25519-sha256\n"  # the usual one takes ten times as long, which is all that ssh does here
            + (f"  ProxyJump {names[number - 1]}\n" if number else "")
        )
    (folder / "known_hosts").write_text("".join(known))
    (folder / "ssh_config").write_text("\n".join(config))
    with ExitStack() as starts:
        for machine in machines.values() if quick else ():
            starts.enter_context(far_starts(machine.programs))
        try:
            for machine in machines.values():
                machine.start()
            yield SshNet(machines, ["ssh", "-F", str(folder / "ssh_config")])
        finally:
            for machine in machines.values():
                machine.stop()
                _end_servers(machine)


def _make_machine(
    folder: Path, common: Path, options: Sequence[str], path: str | None, more: Mapping[str, str]
) -> Sshd:
    folder.mkdir(mode=0o700)
    environ = {"WSH_SERVER_BIND": "127.0.0.1:0", **more}
    for short, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / short).mkdir(mode=0o700)
        environ[variable] = str(folder / short)
    (folder / "home").mkdir(mode=0o700)
    environ["HOME"] = str(folder / "home")
    environ["PATH"] = (
        path if path is not None else f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    _make_key(folder / "host")
    port = _find_port()
    settings = " ".join(f'"{key}={value}"' for key, value in environ.items())
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder / 'host'}\nPidFile none\nAuthorizedKeysFile {common / 'authorized_keys'}\n"
        "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin yes\n"
        f"MaxStartups 200\nMaxSessions 20\nPrintMotd no\nSetEnv {settings}\n"
        + "".join(f"{option}\n" for option in options)
    )
    return Sshd(folder, port, tuple(options), environ)


def _end_servers(machine: Sshd) -> None:
    """End the server that was started there, with its sessions."""
    environ = {**os.environ, **machine.environ}
    run_warm([sys.executable, "-m", "wsh.cli.main", "stop"], env=environ, timeout=HANG_S)
    left = find_processes(machine.places)
    _, alive = psutil.wait_procs(left, timeout=10)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=HANG_S)
    if machine.server is not None:
        machine.server.wait(HANG_S)
