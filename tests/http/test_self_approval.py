"""An agent with a session waits for an approval and tries to give it to itself, by every door that it can reach from inside."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.route.test_approval import asking
from tests.support.bridge.program import running_desktop
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.weak import weakly
from wsh.wire.system.owner import find_own_fault
from wsh.wire.system.place import find_places

# Runs inside. Says for each attempt which status the answer had.
CLIMB = r"""
import http.client, json, os, re, socket, subprocess, sys
facts = json.load(open(sys.argv[1]))
path, answer = "/approvals/" + facts["id"], json.dumps({"digest": facts["digest"], "decision": "approve"})
said = {}

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(facts["socket"])

def ask(how, door, method, path, body="", **headers):
    connection = Unix("localhost") if door == "unix" else http.client.HTTPConnection("127.0.0.1", facts["port"])
    headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    said[how] = reply.status
    return reply.read().decode("utf-8", "replace")

secrets = set(re.findall(r"[A-Za-z0-9_-]{16,}", open(facts["tokens"]).read()))
ask("socket", "unix", "POST", path, answer)
ask("socket as owner", "unix", "POST", path, answer, wsh_role="owner")
ask("page's origin", "tcp", "POST", path, answer, Origin=f"http://127.0.0.1:{facts['port']}")
for number, secret in enumerate(sorted(secrets)):
    ask(f"stored secret {number} as a token", "tcp", "POST", path, answer, Authorization="Bearer " + secret)
    ask(f"stored secret {number} as a sign-in", "tcp", "POST", path, answer, wsh_page=secret,
        Cookie="; ".join(f"{name}={secret}" for name in ("wsh", "wsh_session", f"wsh_{facts['port']}")))
for how, method, door in (("a link", "POST", "/auth/link"), ("a token", "GET", "/auth/token")):
    for kind in ("unix", "tcp"):
        ask(f"{how} over {kind}", kind, method, door, "{}")
ticket = ask("a ticket", "unix", "POST", "/auth/ws-ticket")
for word in (["token"], ["token", "--new", "mine"], ["link"], ["policy", "allow", "touch"]):
    done = subprocess.run([sys.executable, "-m", "wsh.cli.main", *word], capture_output=True, text=True)
    said["wsh " + " ".join(word)] = 403 if done.returncode and not done.stdout.strip() else 200
    for token in re.findall(r"[A-Za-z0-9_-]{20,}", done.stdout):
        ask("what wsh " + word[0] + " printed", "tcp", "POST", path, answer, Authorization="Bearer " + token)
with open(sys.argv[2] + ".part", "w") as out:
    json.dump({"said": said, "ticket": ticket}, out)
os.rename(sys.argv[2] + ".part", sys.argv[2])
"""


@pytest.fixture(scope="module")
def permitting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    fault = find_own_fault(None)
    if fault is not None:
        pytest.skip(f"these tests are about the owner, and this process {fault}")
    folder = tmp_path_factory.mktemp("climb")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        places = find_places()
        places.config.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.config_file.write_text("[approvals]\nweb = true\n")
        with (
            running_server(places, prefix=weakly()) as server,
            running_desktop(places.desktop_info, "ignore", page_answers=True),
        ):
            link = server.request("POST", "/auth/link")  # a browser signs in, so that there is something to steal
            server.extra["link"] = link.status
            yield server


@pytest.mark.parametrize("lowered", ["", "ulimit -S -R 1000;", "ulimit -R 1000; ulimit -x 1000;"])
def test_an_agent_in_a_session_does_not_approve_its_own_request(
    permitting: RunningServer, tmp_path: Path, lowered: str
) -> None:
    target, note = tmp_path / "made", tmp_path / "note"
    (tmp_path / "climb.py").write_text(CLIMB)
    with asking(permitting, "touch", str(target)) as caller:
        facts = {
            "id": caller.shown["id"],
            "digest": caller.shown["digest"],
            "port": permitting.port,
            "socket": str(permitting.socket),
            "tokens": str(permitting.places.tokens),
        }
        (tmp_path / "facts").write_text(json.dumps(facts))
        climb = shlex.join([sys.executable, str(tmp_path / "climb.py"), str(tmp_path / "facts"), str(note)])
        script = f"({lowered} {climb}); read x"
        made = permitting.request(
            "POST", "/sessions", {"name": "climber", "command": shlex.join(["bash", "-c", script])}
        )
        assert made.status == 201, made
        try:
            wait_until(
                note.exists, "its attempts", seen=lambda: permitting.get("/sessions/climber/screen?format=plain")
            )
            found = json.loads(note.read_text())
            assert len(found["said"]) > 12 and any("stored secret" in how for how in found["said"]), found
            ticket = found["said"].pop("a ticket")  # an agent may have one; it makes nobody an owner
            assert {how: status for how, status in found["said"].items() if status not in (401, 403, 429)} == {}, found
            if ticket == 200:
                given = json.loads(found["ticket"])["ticket"]
                body = {"digest": facts["digest"], "decision": "approve"}
                tried = permitting.request("POST", f"/approvals/{facts['id']}?ticket={given}", body, token=None)
                assert tried.status in (401, 403), tried
            assert caller._find(str(target)), "it still waits"
        finally:
            permitting.request("DELETE", "/sessions/climber")
    assert not target.exists()
