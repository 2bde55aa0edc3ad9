"""One command without its sandbox: asked with a reason, shown as a card, run once after the owner's yes, and never otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.mcp.host import HttpHost, StdioHost, failure, structured
from tests.support.mcp.live import set_folders
from tests.support.sandbox.held import BACKENDS, find_missing, make_project
from tests.support.serving import Reply, RunningServer, running_server
from tests.support.waiting import HANG_S, wait_until
from wsh.wire.system.place import Places, find_places
from wsh.wire.token_file import TokenFile

USABLE = [backend for backend in BACKENDS if find_missing(backend) is None]
pytestmark = pytest.mark.skipif(not USABLE, reason="no backend holds on this machine")
POLICY = (
    f'[sandbox]\nagents = "workspace"\naccept_weaker = true\nbackend = "{USABLE[0] if USABLE else "auto"}"\n'
    '[interactive]\nallow = ["touch *"]\n'
)


def write_policy(places: Places, text: str) -> None:
    places.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.policy_file.write_text(text)
    places.policy_file.chmod(0o600)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("leaving")
    with pytest.MonkeyPatch.context() as patch:
        set_folders(folder, patch)
        places = find_places()
        write_policy(places, POLICY)
        environ = {"ALLOWED_COMMANDS": "*", "WSH_APPROVALS_SERVER": "true", "PM_INTERACTIVE_TERMINAL_PATH": "/nowhere"}
        with running_server(places, environ=environ) as running:
            running.extra["agent"] = TokenFile(places.tokens).add_agent("helper")
            yield running


@pytest.fixture
def agent(server: RunningServer) -> Iterator[str]:
    yield str(server.extra["agent"])
    for one in server.get("/approvals")["requests"]:
        if one["state"] == "waiting":
            server.request("POST", f"/approvals/{one['id']}", {"digest": one["digest"], "decision": "decline"})
    for info in server.get("/sessions"):
        server.request("DELETE", f"/sessions/{info['name']}")


def open_held(server: RunningServer, agent: str, project: Path, **more: str) -> str:
    asked = {"command": "cat", "cwd": str(project), **more}
    made = server.request("POST", "/sessions", asked, token=agent)
    assert made.status == 201, made.body
    assert made.json["sandbox"] is not None
    return str(made.json["name"])


def run(server: RunningServer, token: str, session: str, line: str, **more: Any) -> Reply:
    asked = {"input": line, "sandbox": "off", "reason": "the file belongs there", "max_wait_ms": 50} | more
    asked = {name: value for name, value in asked.items() if value is not None}
    return server.request("POST", f"/sessions/{session}/run", asked, token=token, timeout=HANG_S)


def card_of(server: RunningServer, told: dict[str, Any]) -> dict[str, Any]:
    path = f"/approvals/{told['outside']['approval_id']}"
    found: dict[str, Any] = wait_until(lambda: (one := server.get(path))["digest"] and one, "the card")
    return found


def answer(server: RunningServer, card: dict[str, Any], token: str = "", **more: Any) -> Reply:
    body = {"digest": card["digest"], "decision": "approve", "confirm": True} | more
    body = {name: value for name, value in body.items() if value is not None}
    return server.request("POST", f"/approvals/{card['id']}", body, token=token)


def approve(server: RunningServer, told: dict[str, Any]) -> dict[str, Any]:
    card = card_of(server, told)
    reply = answer(server, card)
    assert reply.status == 200, reply.body
    return card


def execute(host: HttpHost, **asked: Any) -> dict[str, Any]:
    result = host.call("execute_command", asked)["result"]
    assert not result.get("isError"), result
    told: dict[str, Any] = yaml.safe_load(result["content"][0]["text"])
    assert told == result["structuredContent"]
    return told


def test_the_card_shows_command_profile_and_reason_and_the_owners_yes_runs_it_once(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    project = make_project(tmp_path)
    session = open_held(server, agent, project, sandbox="read-only")
    line = f"sh -c 'echo $0 $1; pwd; echo x >> {outside}; exit 3' one 'two words'"
    told = run(server, agent, session, line).json
    assert told["finished_by"] == "approval", told
    assert told["outside"]["approval"] == "pending"
    assert not outside.exists()
    card = card_of(server, told)
    assert card["evidence"]["leaves"] == "read-only"
    assert card["evidence"]["sandbox"] is None
    assert card["note"] == "the file belongs there"
    assert card["evidence"]["cwd"] == os.path.realpath(project)
    assert "two words" in card["command"] and str(outside) in card["command"]
    badge = card["badges"][0]
    assert badge["name"] == "leaves_sandbox" and "'read-only'" in badge["sentence"] and badge["hold"]
    assert card["evidence"]["scopes"] == ["once"]
    assert [press["name"] for press in card["evidence"]["presses"]] == ["once", "decline"]
    assert answer(server, card, confirm=None).code == "confirmation_needed"
    for scope in ("session", "always"):
        assert answer(server, card, scope=scope).status in (400, 409, 422)
    assert answer(server, card, command="touch /tmp/other").status in (400, 409, 422), "what was shown, or nothing"
    for token in (agent, None):
        assert answer(server, card, token=token or "nonsense").status in (401, 403)
    assert not outside.exists()
    assert answer(server, card).status == 200
    done = run(server, agent, session, line, max_wait_ms=60_000).json
    assert done["finished_by"] == "command" and done["exit_code"] == 3, done
    assert done["output"].split() == ["one", "two", "words", os.path.realpath(project)]
    assert outside.read_text() == "x\n"
    again = run(server, agent, session, line).json
    assert again["outside"]["approval"] == "pending", "another run is another card"
    assert again["outside"]["approval_id"] != card["id"]
    assert outside.read_text() == "x\n"


def test_the_same_call_goes_on_with_the_same_card(server: RunningServer, agent: str, tmp_path: Path) -> None:
    session = open_held(server, agent, make_project(tmp_path))
    line = f"touch {tmp_path}/same"
    ids = {run(server, agent, session, line).json["outside"]["approval_id"] for _ in range(3)}
    assert len(ids) == 1
    other = run(server, agent, session, f"{line} {tmp_path}/more").json["outside"]["approval_id"]
    assert other not in ids
    mine = TokenFile(server.places.tokens).add_agent("another")
    theirs = run(server, mine, session, line).json["outside"]["approval_id"]
    assert theirs not in ids | {other}


def test_a_rule_that_allows_the_words_does_not_let_them_leave(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    session = open_held(server, agent, make_project(tmp_path))
    told = run(server, agent, session, f"touch {tmp_path}/allowed").json
    assert told["outside"]["approval"] == "pending", told
    assert not (tmp_path / "allowed").exists()
    approve(server, told)
    done = run(server, agent, session, f"touch {tmp_path}/allowed", max_wait_ms=60_000).json
    assert done["exit_code"] == 0, done
    assert (tmp_path / "allowed").exists()


def test_a_yes_to_the_held_command_is_none_to_the_open_one(server: RunningServer, agent: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    words = ["sh", "-c", f"echo seen >> {tmp_path}/which"]

    def ask(**more: str) -> dict[str, Any]:
        request = {
            "action": "execute",
            "invocation": {"mode": "interactive", "intent": "execute_command"},
            "execution": {"command": words[0], "args": words[1:], "note": "why"} | more,
            "runtime": {"timeout_ms": 50, "cwd": str(project)},
        }
        told: dict[str, Any] = server.request("POST", "/terminal", request, token=agent).json
        return told

    held, leaving = ask(), ask(sandbox="off")
    cards = [card_of(server, {"outside": told["result"]}) for told in (held, leaving)]
    assert cards[0]["evidence"]["argv"] == cards[1]["evidence"]["argv"]
    assert cards[0]["evidence"]["sandbox"] == "workspace" and cards[0]["evidence"].get("leaves") is None
    assert cards[0]["digest"] != cards[1]["digest"]
    for one, other in (cards, cards[::-1]):
        crossed = answer(server, one | {"digest": other["digest"]})
        assert (crossed.status, crossed.code) == (409, "approval_changed"), crossed.body
    # A yes for the whole session to the held one, which runs inside, leaves the open one waiting.
    assert answer(server, cards[0], scope="session", confirm=None).status == 200
    wait_until(lambda: server.get(f"/approvals/{cards[0]['id']}")["run"]["exit_code"] is not None, "its end")
    assert not (tmp_path / "which").exists(), "it ran in the sandbox"
    assert server.get(f"/approvals/{cards[1]['id']}")["state"] == "waiting"
    again = ask(sandbox="off")
    assert again["result"]["approval"] == "pending"
    assert answer(server, cards[1]).status == 200
    wait_until((tmp_path / "which").exists, "the open one's file")


def test_a_policy_that_changes_after_the_card_lets_nothing_run(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    request = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "sh", "args": ["-c", f"touch {tmp_path}/late"]},
        "runtime": {"timeout_ms": 50, "cwd": str(make_project(tmp_path))},
    }
    told = server.request("POST", "/terminal", request, token=agent).json
    card = card_of(server, {"outside": told["result"]})
    write_policy(server.places, POLICY.replace('"workspace"', '"off"'))
    try:
        wait_until(lambda: "sandbox" not in str(open_sandbox(server, agent, tmp_path)), "the other policy")
        late = answer(server, card, confirm=None)
        assert (late.status, late.code) == (409, "approval_changed"), late.body
        assert server.get(f"/approvals/{card['id']}")["state"] == "refused"
    finally:
        write_policy(server.places, POLICY)
        wait_until(lambda: "workspace" in str(open_sandbox(server, agent, tmp_path)), "the first policy")
    assert not (tmp_path / "late").exists()


def open_sandbox(server: RunningServer, agent: str, folder: Path) -> object:
    made = server.request("POST", "/sessions", {"command": "cat", "cwd": str(make_project(folder))}, token=agent).json
    server.request("DELETE", f"/sessions/{made['name']}")
    return made["sandbox"] and {"sandbox": made["sandbox"]["profile"]}


def test_declined_and_ill_asked_requests_run_nothing(server: RunningServer, agent: str, tmp_path: Path) -> None:
    session = open_held(server, agent, make_project(tmp_path))
    line = f"touch {tmp_path}/never"
    told = run(server, agent, session, line).json
    body = {"digest": card_of(server, told)["digest"], "decision": "decline", "reason": "not today"}
    assert server.request("POST", f"/approvals/{told['outside']['approval_id']}", body).status == 200
    said = run(server, agent, session, line, max_wait_ms=60_000)
    assert (said.status, said.code) == (403, "sandbox_refused"), said.body
    assert "not today" in said.json["error"]["message"]
    for more in ({"reason": None}, {"reason": "  "}, {"sandbox": None}, {"sandbox": "workspace+network"}):
        refused = run(server, agent, session, line, **more)
        assert refused.status in (400, 422), refused.body
    gone = run(server, agent, session, "no-such-program-anywhere", max_wait_ms=60_000)
    assert gone.status == 400, gone.body
    forbidden = run(server, agent, session, "rm -rf /", max_wait_ms=60_000)
    assert (forbidden.status, forbidden.code) == (403, "forbidden"), forbidden.body
    mine = server.request("POST", "/sessions", {"command": "cat", "cwd": str(tmp_path), "name": "mine"})
    assert mine.json["sandbox"] is None
    open_one = run(server, agent, "mine", line).json
    assert open_one["outside"]["leaves"] == "workspace", "an agent's sandbox, where the session has none"
    assert not (tmp_path / "never").exists()


def test_over_mcp_a_session_execute_command_and_ask_say_how_and_ask(
    server: RunningServer, agent: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path)
    with HttpHost(f"{server.url}/mcp", agent) as host:
        host.initialize()
        made = structured(host.call("wsh_create_session", {"command": "bash --norc", "cwd": str(project)}))
        line = f"touch {tmp_path.parent}/mcp-{tmp_path.name}"
        inside = structured(
            host.call("wsh_run_command", {"session": made["session"], "input": f"{line}; cat /etc/shadow"})
        )
        assert "reason" in inside["sandbox_denied"]["ask"], inside
        more = {"sandbox": "off", "reason": "because", "max_wait_ms": 50}
        told = structured(host.call("wsh_run_command", {"session": made["session"], "input": line} | more))
        assert told["finished_by"] == "approval" and "again" in told["outside"]["note"], told
        approve(server, told)
        more["max_wait_ms"] = 60_000
        done = structured(host.call("wsh_run_command", {"session": made["session"], "input": line} | more))
        assert done["exit_code"] == 0 and done["outside"]["approval"] == "approved", done
        target = Path(f"{tmp_path.parent}/mcp-{tmp_path.name}")
        assert target.exists()
        target.unlink()
        held = execute(host, command="cat /etc/shadow", cwd=str(project))
        assert held["sandbox_denied"]["profile"] == "workspace" and held["sandbox_denied"]["ask"], held
        asked = {"command": line, "cwd": str(project), "sandbox": "off", "reason": "because"}
        pending = execute(host, **asked, timeout_ms=100)
        assert pending["exit_code"] is None and pending["outside"]["approval"] == "pending"
        approve(server, pending)
        assert execute(host, **asked, timeout_ms=60_000)["exit_code"] == 0
        assert target.exists()
        target.unlink()
        wrong = failure(host.call("execute_command", asked | {"reason": " "}))
        assert wrong["code"] == "INVALID_REQUEST"


def test_the_lean_ask_carries_it_to_the_card(server: RunningServer, agent: str, tmp_path: Path) -> None:
    with StdioHost(args=["--toolsets", "lean"]) as host:
        host.initialize()
        asked = {"command": f"touch {tmp_path}/lean", "reason": "because", "sandbox": "off", "timeout_ms": 60_000}
        call = host.start_request("tools/call", {"name": "ask", "arguments": asked})
        waiting = wait_until(
            lambda: [
                one for one in server.get("/approvals")["requests"] if one["state"] == "waiting" and one["digest"]
            ],
            "the card",
        )
        assert waiting[0]["evidence"]["leaves"] == "workspace" and waiting[0]["note"] == "because"
        assert answer(server, waiting[0]).status == 200
        told = host.wait_answer(call)
        assert "exit 0" in str(told), told
    assert (tmp_path / "lean").exists()


def test_the_command_line_asks_and_waits(server: RunningServer, agent: str, tmp_path: Path) -> None:
    session = open_held(server, agent, make_project(tmp_path))
    words = [sys.executable, "-m", "wsh.cli.main", "run", "--sandbox", "off", "--reason", "by hand", session]
    with subprocess.Popen(
        [*words, f"sh -c 'echo told; touch {tmp_path}/line; exit 4'"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as asking:
        try:
            waiting = wait_until(
                lambda: [
                    one for one in server.get("/approvals")["requests"] if one["state"] == "waiting" and one["digest"]
                ],
                "the card",
            )
            assert waiting[0]["note"] == "by hand"
            assert not (tmp_path / "line").exists(), "the owner who asks has not approved by that"
            assert answer(server, waiting[0]).status == 200
            out, _ = asking.communicate(timeout=HANG_S)
        finally:
            asking.kill()
    assert (asking.returncode, out) == (4, "told\n")
    assert (tmp_path / "line").exists()


def test_what_left_its_sandbox_is_in_the_audit(server: RunningServer, agent: str, tmp_path: Path) -> None:
    session = open_held(server, agent, make_project(tmp_path))
    told = run(server, agent, session, f"touch {tmp_path}/audited", reason="for the record").json
    approve(server, told)
    assert (
        run(server, agent, session, f"touch {tmp_path}/audited", reason="x", max_wait_ms=60_000).json["exit_code"] == 0
    )
    text = server.places.audit_log.read_text()
    assert '"leaves_sandbox":"workspace"' in text.replace(" ", "") and "for the record" in text
