"""Approvals answered over HTTP: the owner alone, where the user permits it, once, for exactly what was shown."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge.program import running_desktop
from tests.support.serving import Reply, RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import find_places


@pytest.fixture(scope="module")
def permitting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose user set approvals.server, and a desktop that leaves every answer to the page."""
    folder = tmp_path_factory.mktemp("approvals")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        places = find_places()
        places.config_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.config_file.write_text("[approvals]\nserver = true\n")
        with running_server(places) as server, running_desktop(places.desktop_info, "ignore", page_answers=True):
            yield server


class Caller:
    """An agent that asks and waits."""

    def __init__(self, server: RunningServer, *argv: str, timeout_ms: int = 20_000, cwd: str = "/") -> None:
        body = {
            "action": "execute",
            "invocation": {"mode": "interactive", "intent": "execute_command"},
            "execution": {"command": argv[0], "args": list(argv[1:])},
            "runtime": {"timeout_ms": timeout_ms, "cwd": cwd},
        }
        self.server = server
        self._answer: Reply | None = None

        def ask() -> None:
            self._answer = server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60)

        self._thread = threading.Thread(target=ask)
        self._thread.start()
        word = argv[-1]
        wait_until(lambda: bool(self._find(word)), "the request is shown")
        self.shown = self._find(word)[0]

    def _find(self, word: str) -> list[dict[str, Any]]:
        found = self.server.get("/approvals")["requests"]
        return [one for one in found if one["state"] == "waiting" and one["digest"] and word in one["command"]]

    def answer(self, decision: str = "approve", **more: Any) -> Reply:
        body = {"digest": self.shown["digest"], "decision": decision, **more}
        return self.server.request("POST", f"/approvals/{self.shown['id']}", body)

    def withdraw(self) -> dict[str, Any]:
        body = {"action": "terminate", "target": self.result()["identity"]}
        done: dict[str, Any] = self.server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}).json
        return done

    def result(self) -> dict[str, Any]:
        self._thread.join(60)
        assert self._answer is not None
        answer: dict[str, Any] = self._answer.json
        return answer


@contextmanager
def asking(server: RunningServer, *argv: str, **more: Any) -> Iterator[Caller]:
    caller = Caller(server, *argv, **more)
    try:
        yield caller
    finally:
        caller.answer("decline")
        caller.result()


def entries(server: RunningServer, trace_id: str) -> list[dict[str, Any]]:
    return [entry for entry in server.get("/audit?limit=200")["entries"] if entry["trace_id"] == trace_id]


def test_the_owner_sees_the_evidence_approves_and_the_trail_says_who(permitting: RunningServer) -> None:
    with asking(permitting, "echo", "asked  for") as caller:
        shown = caller.shown
        evidence = shown["evidence"]
        assert evidence["argv"] == ["echo", "'asked  for'"]
        assert evidence["executable"].endswith("/echo") and len(evidence["executable_sha256"]) == 64
        assert evidence["scopes"] == ["once", "session", "always"] and evidence["always"]["rule"] == "echo 'asked  for'"
        assert shown["answerable"] and shown["cwd"] == "/" and shown["risk"] == "none"
        reply = caller.answer()
        assert reply.status == 200, reply
        assert (reply.json["state"], reply.json["scope"]) == ("approved", "once")
        result = caller.result()
        assert result["status"] == "completed" and "asked  for" in result["result"]["stdout"]
        assert result["result"]["approved_by"].startswith("owner:token via wsh")
        trail = entries(permitting, shown["trace_id"])
        approval = next(entry for entry in trail if entry["kind"] == "approval")
        assert approval["by"].startswith("owner:token via wsh") and approval["binding"] == shown["digest"]


def test_a_decline_reaches_the_caller_with_its_reason(permitting: RunningServer) -> None:
    with asking(permitting, "echo", "declined") as caller:
        assert caller.answer("decline", reason="not now").json["state"] == "declined"
        error = caller.result()["error"]
        assert error["code"] == "PM_TERM_DECLINED" and "not now" in error["message"]


def test_an_agents_token_never_answers_and_nothing_runs(permitting: RunningServer, tmp_path: Path) -> None:
    target = tmp_path / "made"
    made = permitting.request("POST", "/auth/tokens", {"name": "robot"})
    with asking(permitting, "touch", str(target)) as caller:
        path = f"/approvals/{caller.shown['id']}"
        body = {"digest": caller.shown["digest"], "decision": "approve"}
        as_agent: list[Reply] = [permitting.request("POST", path, body, headers={"wsh-role": "agent"})]
        if made.status in (200, 201):
            as_agent.append(permitting.request("POST", path, body, token=made.json["token"]))
        for refused in as_agent:
            assert (refused.status, refused.code) == (403, "forbidden"), refused
            assert "agent" in refused.json["error"]["hint"]
        assert permitting.request("POST", path, body, token=None).status == 401
        assert permitting.request("POST", path, body, headers={"Origin": "https://evil.example"}).status == 403
        assert caller._find(str(target)), "it still waits"
    assert not target.exists()


def test_without_the_setting_it_is_refused_by_name(server: RunningServer) -> None:
    refused = server.request("POST", "/approvals/br_1", {"digest": "x", "decision": "approve"})
    assert (refused.status, refused.code) == (403, "forbidden")
    assert "approvals.server" in refused.json["error"]["message"]
    assert server.get("/approvals")["answered_in"] == ["interactive-terminal"]


def test_a_desktop_whose_own_setting_is_off_keeps_its_approvals(places: Any, tmp_path: Path) -> None:
    target = tmp_path / "made"
    with (
        running_server(places, environ={"WSH_APPROVALS_SERVER": "true"}) as server,
        running_desktop(places.desktop_info, "ignore"),
        asking(server, "touch", str(target), timeout_ms=2500) as caller,
    ):
        assert caller.shown["answerable"] is False and caller.shown["evidence"]["argv"][0] == "touch"
        refused = caller.answer()
        assert (refused.status, refused.code) == (403, "forbidden")
        assert "approvals.server" in refused.json["error"]["hint"]
        assert caller.result()["result"]["approval"] == "pending"
        caller.withdraw()
    assert not target.exists()


def test_an_answer_is_used_once_and_never_for_other_evidence(permitting: RunningServer, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with asking(permitting, "touch", str(one)) as first, asking(permitting, "touch", str(other)) as second:
        swapped = permitting.request(
            "POST", f"/approvals/{second.shown['id']}", {"digest": first.shown["digest"], "decision": "approve"}
        )
        assert (swapped.status, swapped.code) == (409, "approval_changed")
        assert first.answer().status == 200
        again = first.answer()
        assert (again.status, again.code) == (409, "approval_settled")
        assert again.json["error"]["details"]["state"] == "approved"
        assert first.answer("decline").code == "approval_settled"
        unknown = permitting.request("POST", "/approvals/br_none", {"digest": "x", "decision": "approve"})
        assert (unknown.status, unknown.code) == (404, "approval_not_found")
        refusals = [e for e in entries(permitting, first.shown["trace_id"]) if e["kind"] == "answer"]
        assert refusals and {e["code"] for e in refusals} == {"approval_settled"}
    assert one.exists() and not other.exists()


def test_a_request_that_its_caller_took_back_cannot_be_approved(permitting: RunningServer, tmp_path: Path) -> None:
    target = tmp_path / "made"
    caller = Caller(permitting, "touch", str(target), timeout_ms=1200)
    assert caller.result()["result"]["approval"] == "pending"
    assert caller.withdraw()["result"]["approval"] == "withdrawn"
    late = caller.answer()
    assert (late.status, late.code) == (409, "approval_settled")
    assert late.json["error"]["details"]["state"] == "withdrawn"
    assert not target.exists()


def test_what_destroys_needs_to_be_confirmed_and_cannot_be_given_for_good(
    permitting: RunningServer, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    with asking(permitting, "rm", "-f", str(victim)) as caller:
        assert caller.shown["risk"] == "destructive" and caller.shown["reasons"]
        assert caller.shown["evidence"]["scopes"] == ["once"]
        unmeant = caller.answer()
        assert (unmeant.status, unmeant.code) == (409, "confirmation_needed")
        assert unmeant.json["error"]["details"]["reasons"]
        for scope, more in (("session", {}), ("always", {"rule": "rm *"})):
            assert caller.answer(scope=scope, confirm=True, **more).status == 400
        assert victim.exists()
        assert caller.answer(confirm=True).json["state"] == "approved"
        assert caller.result()["result"]["authorization"] == "allowed_with_warning"
    assert not victim.exists()


def test_an_edited_command_runs_instead_and_the_caller_is_told(permitting: RunningServer, tmp_path: Path) -> None:
    asked, instead = tmp_path / "asked", tmp_path / "in stead"
    with asking(permitting, "touch", str(asked)) as caller:
        assert caller.answer(command="touch 'unclosed").status == 400
        assert caller.answer(command="  ").status == 400
        reply = caller.answer(command=f"touch '{instead}'")
        assert reply.status == 200 and reply.json["edited"] is True
        assert caller.result()["result"]["edited_argv"] == ["touch", f"'{instead}'"]
    assert instead.exists() and not asked.exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decision": "approve"},
        {"digest": "", "decision": "approve"},
        {"digest": "x", "decision": "maybe"},
        {"digest": "x", "decision": "approve", "scope": "ever"},
        {"digest": "x", "decision": "approve", "headless": True},
        {"digest": "x", "decision": "approve", "rule": "echo"},
        {"digest": "x", "decision": "approve", "reason": "because"},
        {"digest": "x", "decision": "decline", "scope": "once"},
        {"digest": "x", "decision": "decline", "command": "echo"},
        {"digest": "x", "decision": "approve", "command": "echo", "scope": "session"},
        {"digest": "x", "decision": "approve", "unknown": 1},
        {"digest": 7, "decision": "approve"},
        {"digest": "x", "decision": "approve", "confirm": "yes"},
    ],
)
def test_an_answer_that_cannot_be_meant_is_refused(permitting: RunningServer, body: dict[str, Any]) -> None:
    refused = permitting.request("POST", "/approvals/br_1", body)
    assert (refused.status, refused.code) == (400, "invalid_request")


def test_of_many_answers_at_once_exactly_one_counts(permitting: RunningServer, tmp_path: Path) -> None:
    log = tmp_path / "runs"
    script = tmp_path / "note.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {log}\n")
    script.chmod(0o755)
    for _ in range(5):
        log.unlink(missing_ok=True)
        with asking(permitting, str(script)) as caller, ThreadPoolExecutor(8) as pool:
            ways: list[Callable[[], Reply]] = [caller.answer, lambda: caller.answer("decline")] * 4
            replies = list(pool.map(lambda way: way(), ways))
            won = [reply for reply in replies if reply.status == 200]
            assert len(won) == 1, [reply.json for reply in replies]
            assert all(reply.code == "approval_settled" for reply in replies if reply is not won[0])
            result = caller.result()
            approved = won[0].json["state"] == "approved"
            assert result["success"] is approved
        assert log.exists() is approved and (not approved or log.read_text() == "ran\n")


def test_a_program_that_was_exchanged_after_it_was_shown_does_not_run(
    permitting: RunningServer, tmp_path: Path
) -> None:
    program, proof = tmp_path / "tool", tmp_path / "proof"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    with asking(permitting, str(program)) as caller:
        program.write_text(f"#!/bin/sh\ntouch {proof}\n")
        refused = caller.answer()
        assert (refused.status, refused.code) == (409, "approval_changed")
        assert caller.result()["success"] is False
    assert not proof.exists()


def test_what_is_typed_into_a_terminal_is_approved_each_time(permitting: RunningServer) -> None:
    def ask(**request: Any) -> tuple[threading.Thread, list[dict[str, Any]]]:
        got: list[dict[str, Any]] = []
        thread = threading.Thread(
            target=lambda: got.append(permitting.request("POST", "/terminal", request, timeout=60).json)
        )
        thread.start()
        return thread, got

    def waiting(kind: str) -> list[dict[str, Any]]:
        found = permitting.get("/approvals")["requests"]
        return [one for one in found if one["state"] == "waiting" and one["kind"] == kind and one["digest"]]

    def say_yes(kind: str) -> dict[str, Any]:
        wait_until(lambda: bool(waiting(kind)), f"the request to {kind}")
        (shown,) = waiting(kind)
        body = {"digest": shown["digest"], "decision": "approve"}
        assert permitting.request("POST", f"/approvals/{shown['id']}", {**body, "scope": "session"}).status == 400
        assert permitting.request("POST", f"/approvals/{shown['id']}", {**body, "command": "echo"}).status == 400
        assert permitting.request("POST", f"/approvals/{shown['id']}", body).status == 200
        return shown

    opened, first = ask(
        action="execute", invocation={"mode": "interactive", "intent": "open_only"}, runtime={"timeout_ms": 60_000}
    )
    opened.join(60)  # a terminal without a command runs at once where both policies say so
    identity = first[0]["identity"]
    typed, second = ask(
        action="execute",
        invocation={"mode": "interactive", "intent": "execute_command"},
        execution={"command": "echo typed-$((40+2))"},
        target={"terminal_id": identity["terminal_id"]},
        runtime={"timeout_ms": 60_000},
    )
    shown = say_yes("send")
    assert shown["evidence"]["argv"] == ["'echo typed-$((40+2))'"] and shown["evidence"]["scopes"] == ["once"]
    typed.join(60)
    assert "typed-42" in second[0]["result"]["stdout"], second
    ended = permitting.request("POST", "/terminal", {"action": "terminate", "target": identity})
    assert ended.status == 200


def test_a_request_outlives_the_post_that_made_it(permitting: RunningServer, tmp_path: Path) -> None:
    target = tmp_path / "made"
    body = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "touch", "args": [str(target)]},
        "runtime": {"timeout_ms": 30_000, "cwd": "/"},
    }
    caller = http.client.HTTPConnection("127.0.0.1", permitting.port, timeout=60)
    caller.request("POST", "/terminal", json.dumps(body), {**permitting.auth, "Content-Type": "application/json"})

    def find() -> dict[str, Any]:
        found = permitting.get("/approvals")["requests"]
        return next((one for one in found if str(target) in one["command"]), {})

    wait_until(lambda: bool(find().get("digest")), "the request is shown")
    shown = find()
    caller.close()
    late = permitting.request("POST", f"/approvals/{shown['id']}", {"digest": shown["digest"], "decision": "approve"})
    assert (late.status, late.json["state"]) == (200, "approved")
    wait_until(target.exists, "what was approved")
