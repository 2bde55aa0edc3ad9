"""`wsh host` and the rest of the command line with sessions of other machines."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host.conftest import Net, open_net
from tests.support.pane import Pane
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import run_warm

pytestmark = pytest.mark.accept

WSH = (sys.executable, "-m", "wsh.cli.main")


def _wsh(*words: str, status: int = 0) -> str:
    done = run_warm([*WSH, *words], text=True, timeout=HANG_S, stdin=subprocess.DEVNULL)
    assert done.returncode == status, done
    return str(done.stdout)


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
    # Two names of one machine: its sessions stand in the list once, under the first name, and the list of hosts says so.
    assert "near/made" not in [one["name"] for one in _json("list", "--json")]
    assert {one["name"]: one["same_as"] for one in _json("host", "list", "--json")["hosts"]}["near"] == "again"
    assert "the same server as again" in _wsh("host", "list")
    assert _wsh("run", "near/made", "echo $((6*7))").strip() == "42"
    assert _json("kill", "--json", "again/made") == {"killed": ["again/made"]}
    assert "again" not in [one["name"] for one in _json("host", "remove", "--json", "again")["hosts"]]
    gone = run_warm([*WSH, "screen", "--json", "again/made"], text=True, timeout=HANG_S)
    assert "host_not_found" in gone.stderr


def test_a_machine_that_ssh_does_not_reach_is_not_added(net: Net) -> None:
    _wsh("host", "add", "nobody", "nobody.invalid", status=1)
    assert "nobody" not in [one["name"] for one in _json("host", "list", "--json")["hosts"]]
    refused = net.server.request("PUT", "/hosts/x%2Fy", {"target": "near"})
    assert refused.code == "invalid_host_name"


def test_attach_to_a_machine_takes_the_session_that_was_used_last_there(net: Net, tmp_path: Path) -> None:
    _wsh("new", "near/older", "--", "bash", "--norc", "--noprofile")
    _wsh("new", "near/newer", "--", "bash", "--norc", "--noprofile")
    _wsh("run", "near/newer", "true")
    pane = Pane(tmp_path, shlex.join([*WSH, "attach", "near/"]))
    try:
        pane.type("echo sum $((20+22)) > $HOME/attached", "Enter")
        mark = net.ssh.machines["near"].folder / "home" / "attached"
        wait_until(mark.exists, "the typed line", seen=pane.text)
        path = "/sessions/near%2Fnewer/scrollback?format=plain"
        wait_until(lambda: "attached" in json.dumps(net.server.get(path)), "the line in the newer one")
    finally:
        pane.close()
    for name in ("older", "newer"):
        _wsh("kill", f"near/{name}")


def test_attach_says_that_the_machine_is_away_and_goes_on_when_it_is_back(net: Net, tmp_path: Path) -> None:
    _wsh("new", "near/shown", "--", "bash", "--norc", "--noprofile")
    machine = net.ssh.machines["near"]
    pane = Pane(tmp_path, shlex.join([*WSH, "attach", "near/shown"]))
    try:
        pane.type("echo before-$((6*7))", "Enter")
        pane.wait(lambda text: "before-42" in text, "the first output")
        machine.stop()
        pane.wait(lambda text: "near is away" in text and "before-42" in text, "word of the machine")
        machine.start()
        net.wait_until_online("near")
        pane.wait(lambda text: "near is away" not in text and "before-42" in text, "the picture")
        pane.type("echo after-$((6*7))", "Enter")
        pane.wait(lambda text: "after-42" in text, "the output behind it")
    finally:
        pane.close()
        if machine.process is None:
            machine.start()
    net.wait_until_online("near")
    _wsh("kill", "near/shown")


def test_a_machine_whose_python_is_too_old_is_told_so_and_not_added(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    python = programs / "python3"
    python.write_text("#!/bin/sh\necho 3.9.2\n")
    python.chmod(0o755)
    for name in ("sh", "tar", "mkdir"):
        (programs / name).symlink_to(f"/bin/{name}")
    with open_net(tmp_path, ["old"], path=str(programs)) as net:
        words = [*WSH, "host", "add", "--yes", "old"]
        done = run_warm(words, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL)
        assert done.returncode == 1 and "3.9.2" in done.stderr and "3.11" in done.stderr, done
        assert net.server.get("/hosts")["hosts"] == []


def test_another_version_is_told_and_works_and_another_protocol_is_refused_with_what_to_do(tmp_path: Path) -> None:
    patches = tmp_path / "patches"
    patches.mkdir()
    patch = patches / "sitecustomize.py"
    patch.write_text("import wsh.wire.version\nwsh.wire.version.VERSION = '9.9.9'\n")
    with open_net(tmp_path, ["other"], environ={"PYTHONPATH": str(patches)}, installed=True) as net:
        assert net.host("other")["version"] == "9.9.9"
        assert _wsh("new", "other/job", "--", "bash", "--norc").strip() == "other/job"
        assert _wsh("run", "other/job", "echo $((6*7))").strip() == "42"
        assert any("9.9.9" in found["what"] for found in _json("host", "doctor", "--json", "other")["findings"])
        _wsh("kill", "other/job")
        patch.write_text("import wsh.host.carrier\nwsh.host.carrier.PROTOCOL = 99\n")
        machine = net.ssh.machines["other"]
        subprocess.run([*WSH, "stop"], env={**os.environ, **machine.environ}, check=True, capture_output=True)
        wait_until(
            lambda: "protocol 99" in str(net.host("other")["problem"]), "the refusal", seen=lambda: net.host("other")
        )
        assert "wsh host install" in str(net.host("other")["problem"])
