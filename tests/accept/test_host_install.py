"""wsh is brought to a machine that has none: wheels of this version, into a folder of its own, with nothing fetched by the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.conftest import open_net
from tests.support.waiting import HANG_S

WSH = (sys.executable, "-m", "wsh.cli.main")
pytestmark = [pytest.mark.accept, pytest.mark.timeout(1200)]


def test_a_machine_without_wsh_gets_it_and_is_used(tmp_path: Path) -> None:
    # A PATH that has Python and no wsh.
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    net_folder = tmp_path / "net"
    net_folder.mkdir()
    with open_net(net_folder, ["bare"], path=f"{programs}:/usr/bin:/bin") as net:
        asked = subprocess.run(
            [*WSH, "host", "add", "bare"], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL
        )
        assert asked.returncode == 1 and "Nothing was added" in asked.stderr, asked
        done = subprocess.run(
            [*WSH, "host", "add", "--yes", "--json", "bare"],
            capture_output=True,
            text=True,
            timeout=1000,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done
        assert json.loads(done.stdout)["online"], done
        made = net.server.request("POST", "/sessions", {"name": "bare/job", "command": "bash --norc"})
        assert made.status == 201, made
        ran = net.server.request("POST", "/sessions/bare%2Fjob/run", {"input": "echo $((6*7))", "format": "plain"})
        assert "42" in json.dumps(ran.json["screen"])
        installed = list((net.ssh.machines["bare"].folder / "home" / ".local" / "share" / "wsh-host").iterdir())
        assert len(installed) == 1, installed
        assert net.server.request("DELETE", "/sessions/bare%2Fjob").status == 204
