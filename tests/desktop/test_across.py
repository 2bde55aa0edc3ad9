"""The window with the server in another network namespace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.adapters.test_adapter import REPOSITORY
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.accept


def test_what_a_server_in_another_network_asks_is_answered_in_the_window_and_runs_on_the_desktop(
    tmp_path: Path,
) -> None:
    as_root = [] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--net", "--mount"]
    done = subprocess.run(
        [*as_root, sys.executable, "-m", "tests.support.desktop.across", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=4 * HANG_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    approved, declined = (json.loads(line) for line in done.stdout.splitlines())
    assert approved["result"]["stdout"].split() == ["10.213.0.1"], (
        "it ran in the desktop's network, not in the server's"
    )
    assert declined["error"]["code"] == "PM_TERM_DECLINED"
    assert not (tmp_path / "made").exists()
