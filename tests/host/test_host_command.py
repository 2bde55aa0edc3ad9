"""`wsh host` and the rest of the command line with sessions of other machines."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.host.conftest import Net
from tests.support.waiting import HANG_S

WSH = (sys.executable, "-m", "wsh.cli.main")


def _wsh(*words: str, status: int = 0) -> str:
    done = subprocess.run([*WSH, *words], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL)
    assert done.returncode == status, done
    return done.stdout


def _json(*words: str) -> Any:
    return json.loads(_wsh(*words))


def test_a_machine_is_added_examined_used_and_removed(net: Net) -> None:
    added = _json("host", "add", "--json", "again", "near")
    assert added["online"] and added["target"] == "near"
    assert "again" in [one["name"] for one in _json("host", "list", "--json")["hosts"]]
    assert all(found["good"] for found in _json("host", "doctor", "--json", "again")["findings"])
    assert _wsh("new", "again/made", "--", "bash", "--norc").strip() == "again/made"
    assert _wsh("run", "again/made", "echo $((6*7))").strip() == "42"
    assert "again/made" in [one["name"] for one in _json("list", "--json")]
    # Two names of one machine show the same sessions.
    assert "near/made" in [one["name"] for one in _json("list", "--json")]
    assert _json("kill", "--json", "again/made") == {"killed": ["again/made"]}
    assert "again" not in [one["name"] for one in _json("host", "remove", "--json", "again")["hosts"]]
    assert (
        "host_not_found"
        in subprocess.run(
            [*WSH, "screen", "--json", "again/made"], capture_output=True, text=True, timeout=HANG_S
        ).stderr
    )


def test_a_machine_that_ssh_does_not_reach_is_not_added(net: Net) -> None:
    _wsh("host", "add", "nobody", "nobody.invalid", status=1)
    assert "nobody" not in [one["name"] for one in _json("host", "list", "--json")["hosts"]]
    refused = net.server.request("PUT", "/hosts/x%2Fy", {"target": "near"})
    assert refused.code == "invalid_host_name"
