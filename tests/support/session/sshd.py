"""An ssh server of the test's own: its keys, its port on loopback, the user who runs the tests."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

PROGRAM = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")

CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
SetEnv HOME={folder}
"""


@contextmanager
def serve_ssh(folder: Path) -> Iterator[str]:
    """Yields the command line that opens a terminal there; what is to run follows it."""
    if PROGRAM is None or shutil.which("ssh") is None:
        pytest.skip("Debian's openssh-server is not installed")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # the package makes it when its service starts
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "config"
    config.write_text(CONFIG.format(port=port, folder=folder))
    log = folder / "log"
    with log.open("wb") as file:
        server = subprocess.Popen([PROGRAM, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stderr=file)
    try:
        wait_until(lambda: "Server listening" in log.read_text() or server.poll() is not None, "sshd says nothing")
        assert server.poll() is None, log.read_text()
        options = ["UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "LogLevel=ERROR", "IdentitiesOnly=yes"]
        words = ["ssh", "-F", "none", "-t", "-i", str(folder / "user"), "-p", str(port)]
        words += [word for option in options for word in ("-o", option)]
        yield " ".join([*words, f"{getpass.getuser()}@127.0.0.1"])
    finally:
        server.terminate()
        server.wait()
