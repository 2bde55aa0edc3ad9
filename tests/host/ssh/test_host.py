"""Sessions of two machines behind real sshd, in the doors of a server here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.host.conftest import Net


def test_a_far_session_is_made_used_and_ended_by_its_address(net: Net) -> None:
    made = net.server.request("POST", "/sessions", {"name": "far/train", "command": "bash --norc"})
    assert made.status == 201, made
    assert made.json["name"] == "far/train" and made.json["host"] == "far"
    ran = net.server.request("POST", "/sessions/far%2Ftrain/run", {"input": "echo $((6*7))", "format": "plain"})
    assert ran.status == 200, ran
    assert "42" in json.dumps(ran.json["screen"])
    assert "far/train" in [one["name"] for one in net.server.get("/sessions")]
    assert net.server.get("/sessions?host=far")[0]["name"] == "far/train"
    missing = net.server.request("GET", "/sessions/far%2Fnone/screen")
    assert missing.status == 404 and missing.code == "session_not_found"
    assert "far/none" in missing.json["error"]["message"]
    assert net.server.request("DELETE", "/sessions/far%2Ftrain").status == 204
    assert "far/train" not in [one["name"] for one in net.server.get("/sessions")]


def test_a_far_session_begins_at_home_as_a_login_does(net: Net) -> None:
    home = Path(net.ssh.machines["near"].environ["HOME"])
    (home / "project").mkdir(exist_ok=True)
    for name, given, cwd in (("near/a", {}, home), ("near/b", {"cwd": "project"}, home / "project")):
        made = net.server.request("POST", "/sessions", {"name": name, "command": "cat", **given})
        assert made.status == 201, made
        assert made.json["cwd"] == str(cwd.resolve())
        assert net.server.request("DELETE", f"/sessions/{name.replace('/', '%2F')}").status == 204
