"""Requests that outlive the server: asked again by its successor, run at most once, told to the agent that asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.test_server_approval import TOOL, ask, execute, read, read_end, shown
from tests.http.test_server_approval import places as places
from tests.http.test_wake import kill
from tests.support.mcp.host import StdioHost
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places

ENVIRON = {"WSH_APPROVALS_SERVER": "true"}


class Lived:
    """A server, and after each kill its successor."""

    def __init__(self, places: Places, **environ: str) -> None:
        self._places = places
        self._environ = ENVIRON | environ
        self.server: RunningServer = start_server(places, environ=self._environ)

    def die(self) -> RunningServer:
        kill(self.server)
        self.server = start_server(self._places, environ=self._environ)
        return self.server


@pytest.fixture
def lived(places: Places) -> Iterator[Lived]:
    one = Lived(places)
    yield one
    kill(one.server)
    with running_server(places, check_left=False):
        pass


def approve(server: RunningServer, card: dict[str, Any]) -> int:
    return server.request("POST", f"/approvals/{card['id']}", {"digest": card["digest"], "decision": "approve"}).status


def find(server: RunningServer, id: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = server.get("/approvals")["requests"]
    return next(one for one in found if one["id"] == id)


def test_a_waiting_request_is_asked_again_and_runs_once(lived: Lived, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    answer = ask(lived.server, "sh", "-c", f"echo once >> {ran}; echo said; exit 5")
    before = shown(lived.server, answer)
    after = shown(lived.die(), answer)
    for field in ("command", "cwd", "since", "asker", "kind", "place"):
        assert after[field] == before[field], field
    assert after["state"] == "waiting" and after["deadline"] == pytest.approx(before["deadline"], abs=2)
    stale = lived.server.request("POST", f"/approvals/{after['id']}", {"digest": "0" * 64, "decision": "approve"})
    assert stale.json["error"]["code"] == "approval_changed" and not ran.exists()
    assert approve(lived.server, after) == 200
    assert read_end(lived.server, answer)["result"]["exit_code"] == 5
    lived.die()
    told = read(lived.server, answer)["result"]
    assert (told["exit_code"], told["stdout"].strip()) == (5, "said"), "it is told after one more death"
    over = find(lived.server, after["id"])
    assert over["state"] == "approved" and over["run"]["exit_code"] == 5 and over["run"]["session"]
    assert approve(lived.server, after) == 409
    assert ran.read_text() == "once\n"


def test_what_runs_is_followed_by_the_successor_and_what_was_declined_stays_declined(lived: Lived) -> None:
    runs = ask(lived.server, "sh", "-c", "echo first; read line; echo second $line; exit 6")
    declined = ask(lived.server, "true", "never")
    assert approve(lived.server, shown(lived.server, runs)) == 200
    card = shown(lived.server, declined)
    no = {"digest": card["digest"], "decision": "decline", "reason": "not now"}
    assert lived.server.request("POST", f"/approvals/{card['id']}", no).status == 200
    server = lived.die()
    again = read(server, declined)
    assert again["error"]["code"] == "PM_TERM_DECLINED" and "not now" in again["error"]["message"]
    session = find(server, runs["result"]["approval_id"])["run"]["session"]
    assert server.request("POST", f"/sessions/{session}/input", b"more\r").status < 300
    end = read_end(server, runs)["result"]
    assert end["exit_code"] == 6 and "first" in end["stdout"] and "second more" in end["stdout"]


def test_what_ran_out_while_no_server_was_there_is_over(places: Places) -> None:
    lived = Lived(places, WSH_APPROVALS_TIMEOUT_MS="1000")
    try:
        answer = ask(lived.server, "true", "late")
        card = shown(lived.server, answer)
        kill(lived.server)
        wait_until(lambda: time.time() > card["deadline"], "its end")
        lived.server = start_server(places, environ=ENVIRON)
        assert read(lived.server, answer)["error"]["code"] == "PM_TERM_TIMEOUT"
        assert find(lived.server, card["id"])["state"] == "expired" and approve(lived.server, card) == 409
    finally:
        kill(lived.server)
        with running_server(places, check_left=False):
            pass


def test_an_agent_over_stdio_finds_its_request_again_and_one_that_is_gone_loses_it(
    places: Places, tmp_path: Path
) -> None:
    lived = Lived(places, WSH_APPROVALS_RECONNECT_MS="4000")
    try:
        with StdioHost() as stays, StdioHost() as goes:
            for host in (stays, goes):
                host.initialize()
            kept = stays.call(TOOL, execute("sh", "-c", f"echo x >> {tmp_path}/kept; exit 3"))["result"]
            lost = goes.call(TOOL, execute("touch", str(tmp_path / "lost")))["result"]["structuredContent"]
            answer = kept["structuredContent"]
            for one in (answer, lost):
                shown(lived.server, one)
            goes.process.kill()
            goes.process.wait()
            server = lived.die()
            listed = stays.call(TOOL, {"action": "list"})["result"]["structuredContent"]["result"]["items"]
            assert [(one["session_id"], one["approval"]) for one in listed] == [
                (answer["identity"]["session_id"], "pending")
            ]
            id = lost["result"]["approval_id"]
            wait_until(lambda: find(server, id)["state"] == "withdrawn", seen=lambda: find(server, id))
            assert approve(server, shown(server, answer)) == 200
            follow = {"action": "read_output", "target": answer["identity"], "runtime": {"timeout_ms": 20_000}}
            end = wait_until(
                lambda: (
                    (one := stays.call(TOOL, follow)["result"]["structuredContent"])["status"] == "completed" and one
                )
            )
            assert end["result"]["exit_code"] == 3
        assert (tmp_path / "kept").read_text() == "x\n" and not (tmp_path / "lost").exists()
    finally:
        kill(lived.server)
        with running_server(places, check_left=False):
            pass


@pytest.mark.torture
def test_kills_lose_no_request_and_run_none_twice(lived: Lived, tmp_path: Path, torture: bool) -> None:
    """Killed while a request is written, shown, answered, started, settled, or runs."""
    kills = 50 if torture else 3
    asked: list[dict[str, Any]] = []
    for round in range(kills):
        answer = ask(lived.server, "sh", "-c", f"echo {round} >> {tmp_path}/ran; exit 4")
        asked.append(answer)
        if round % 4:
            card = shown(lived.server, answer)
            answering = threading.Thread(target=_try_to_approve, args=(lived.server, card))
            answering.start()
            threading.Event().wait((round * 37 % 100) / 1500)
            lived.die()
            answering.join()
        else:
            lived.die()
    waited = 0
    for number, answer in enumerate(asked):
        one = find_or_read(lived.server, answer)
        if one == "waiting":
            waited += 1
            assert approve(lived.server, shown(lived.server, answer)) == 200, number
        elif one != "unstarted":
            assert one == "approved", (number, one)
    unstarted = {n for n, answer in enumerate(asked) if find_or_read(lived.server, answer) == "unstarted"}
    wanted = sorted(set(range(kills)) - unstarted)
    ran = tmp_path / "ran"
    wait_until(lambda: len(ran.read_text().split()) >= len(wanted), "all to have run")
    assert sorted(map(int, ran.read_text().split())) == wanted, "each once"
    assert waited >= kills // 4
    for number in wanted:
        assert read_end(lived.server, asked[number])["result"]["exit_code"] == 4


def _try_to_approve(server: RunningServer, card: dict[str, Any]) -> None:
    try:
        approve(server, card)
    except OSError:
        pass  # killed meanwhile


def find_or_read(server: RunningServer, answer: dict[str, Any]) -> str:
    """What the agent is told of its request, in one word."""
    told = read(server, answer, 1)
    if "error" in told and told["error"] is not None:
        return "unstarted" if told["error"]["code"] == "PM_TERM_INTERNAL" else str(told["error"]["code"])
    return "waiting" if told["result"].get("approval") == "pending" else "approved"
