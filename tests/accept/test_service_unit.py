"""The units of `wsh service` under a real systemd of this user: started by a connection, restarted after a crash with all sessions."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.accept
SYSTEMD = Path("/lib/systemd/systemd")

# In a mount namespace with a /run of its own, where systemd takes itself for booted, and in a control group of its own: all processes
# of the group that it is started in become its own. Every line is said, so that a failure shows how far it came.
SCRIPT = """
set -eu
for group in $CONTROL_GROUPS; do echo $$ > $group/cgroup.procs; done
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0
/lib/systemd/systemd --user --log-level=warning --log-target=console & manager=$!
trap 'wsh stop || true; kill $manager; wait $manager || true' EXIT
until systemctl --user is-system-running >/dev/null 2>&1; do kill -0 $manager; sleep 0.1; done
wsh service install --bind 127.0.0.1:$PORT
echo "before: $(systemctl --user is-active wsh.service || true)"
wsh new --name kept "printf before; exec cat" >/dev/null
first=$(systemctl --user show -p MainPID --value wsh.service)
echo "started by a connection: $(systemctl --user is-active wsh.service)"
kill -9 $first
wsh send --enter kept after
until wsh screen kept | grep -q '^after'; do sleep 0.1; done
echo "screen: $(wsh screen kept | tr '\\n' ' ')"
echo "restarts: $(systemctl --user show -p NRestarts --value wsh.service)"
[ "$(systemctl --user show -p MainPID --value wsh.service)" != $first ]
systemctl --user restart wsh.service
echo "after a restart: $(wsh list | cut -f 1) $(wsh screen kept | tail -n 1)"
wsh service status
wsh service remove
echo "left: $(wsh list)"
wsh stop
"""


@contextmanager
def own_control_groups() -> Iterator[list[Path]]:
    """A group in each hierarchy that can have one; what is in it at the end goes with it."""
    top = Path("/sys/fs/cgroup")
    groups = []
    try:
        for hierarchy in (top, *top.iterdir()):
            if not (hierarchy / "cgroup.procs").exists() or (hierarchy / "cpuset.cpus").exists():
                continue
            group = hierarchy / f"wsh-test-{os.getpid()}"
            group.mkdir()
            groups.append(group)
        yield groups
    finally:
        for group in groups:
            wait_until(lambda group=group: _remove(group), f"the end of what is in {group}")  # type: ignore[misc]


def _remove(group: Path) -> bool:
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except OSError as problem:
        if problem.errno != errno.EBUSY:
            raise
    return not group.exists()


@pytest.mark.timeout(300)
def test_a_unit_is_started_by_a_connection_and_restarted_after_a_crash_with_its_sessions(tmp_path: Path) -> None:
    if os.getuid() != 0 or not SYSTEMD.exists() or shutil.which("unshare") is None:
        pytest.skip("needs root, systemd and unshare")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/0", "SHELL": "/bin/sh", "PORT": str(port)}
    before = Path("/proc/self/cgroup").read_text()
    with own_control_groups() as groups:
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT],
            env={**env, "CONTROL_GROUPS": " ".join(map(str, groups))},
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert Path("/proc/self/cgroup").read_text() == before, "the machine's other processes stay where they are"
    said = done.stdout.splitlines()
    assert done.returncode == 0, done
    assert "before: inactive" in said
    assert "started by a connection: active" in said
    assert "screen: beforeafter after " in said
    assert "restarts: 1" in said
    assert "after a restart: kept after" in said
    left = next(line for line in said if line.startswith("left: "))
    assert left.split("\t")[:2] == ["left: kept", "kept"], (
        f"the socket went with its unit, the session is the keeper's: {done}"
    )
