"""The container's topology without a container: server and desktop in two network namespaces, a cable between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapters.test_adapter import REPOSITORY

pytestmark = pytest.mark.accept


def test_a_server_in_another_network_reaches_the_desktop_by_its_alias_and_survives_its_losses(tmp_path: Path) -> None:
    as_root = [] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    done = subprocess.run(
        [*as_root, sys.executable, "-m", "tests.support.contract.topology", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    there, cut, unplugged, plugged, killed, back = answers
    assert there["result"]["stdout"].split() == ["10.213.0.1"], "it ran in the desktop's network, not in the server's"
    assert cut["error"]["code"] == "PM_TERM_DISCONNECTED" and cut["error"]["details"]["request_state"] == "started"
    assert unplugged["error"]["code"] == "PM_TERM_GUI_UNAVAILABLE"
    hosts = [entry["host"] for entry in unplugged["error"]["details"]["attempted_candidates"]]
    assert hosts[0] in {"host.containers.internal", "10.213.0.1"} and hosts[1] == "host.docker.internal"
    assert plugged["success"], "the cable is back"
    assert killed["error"]["code"] in {"PM_TERM_GUI_UNAVAILABLE", "PM_TERM_DISCONNECTED"}
    assert back["result"]["stdout"] == "back\n"
    assert "token-of-the-desk" not in done.stdout + done.stderr
