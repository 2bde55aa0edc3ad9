"""The clock on the wall jumps by years, both ways, and nothing that is about durations notices."""

from __future__ import annotations

import json
import time
from datetime import date
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.http.route.test_approval import asking
from tests.support.bridge.program import running_desktop
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from tests.support.warm import customize
from wsh.session.session import Session
from wsh.wire.system.moment import Moment, read_moment
from wsh.wire.system.place import Places

_SET = """
import os, time

def _shift():
    with open(os.environ["WSH_TEST_CLOCK"]) as file:
        return int(file.read())

_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _shift()
time.time_ns = lambda: _time_ns() + _shift() * 1_000_000_000
"""
_DAY = 86_400
_JUMPS = {"+9y": 9 * 365 * _DAY, "-9y": -9 * 365 * _DAY, "+25h": 25 * 3600}


class Clock:
    """The clock on the wall as a server sees it; its monotonic clock goes on as it should."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.environ = {**customize(folder, _SET), "WSH_TEST_CLOCK": str(self._file)}
        self.jump(0)

    def jump(self, by_s: int) -> None:
        """To so much before or after the real time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(by_s))
        fresh.replace(self._file)


def day_of(server: RunningServer) -> date:
    return parsedate_to_datetime(server.request("GET", "/health").headers["date"]).date()


def ticket(server: RunningServer) -> str:
    given = server.request("POST", "/auth/ws-ticket")
    assert given.status == 200, given
    return str(given.json["ticket"])


def ask(server: RunningServer, ticket: str, **message: Any) -> dict[str, Any]:
    with connect(f"{server.ws_url}/ws/json?ticket={ticket}") as socket:
        socket.send(json.dumps({"id": 1, **message}))
        while True:
            said: dict[str, Any] = json.loads(socket.recv(60))
            if said.get("id") == 1:
                return said


@pytest.mark.parametrize("jump", list(_JUMPS))
def test_waits_tickets_leases_and_retention_do_not_follow_the_clock(places: Places, tmp_path: Path, jump: str) -> None:
    clock = Clock(tmp_path)
    with running_server(places, environ=clock.environ, expect_alive=True) as server:
        before = day_of(server)
        server.request("POST", "/sessions", {"name": "lives", "command": "bash --norc"})
        server.request("POST", "/sessions", {"name": "ended", "command": "echo it is over"})
        wait_until(lambda: not server.get("/sessions/ended")["running"], "its end")
        assert server.request("POST", "/sessions/lives/run", {"input": "echo one"}).json["output"].strip() == "one"
        early = ticket(server)
        captured = server.request("POST", "/sessions/lives/input/capture")
        assert captured.status in (200, 204), captured

        clock.jump(_JUMPS[jump])
        assert abs((day_of(server) - before).days) >= 1, "the server does not see the jump"
        # a ticket of before, and one of now
        for one in (early, ticket(server)):
            assert "result" in ask(server, one, method="list_sessions")
        # runs and waits last as long as they should
        ran = server.request("POST", "/sessions/lives/run", {"input": "sleep 0.2; echo two"})
        assert ran.json["output"].strip() == "two" and 200 <= ran.json["duration_ms"] < 60_000, ran
        idle = server.request("GET", "/sessions/lives/idle?timeout_ms=50&max_wait_ms=60000")
        assert idle.status == 200 and idle.json["last_activity_ms"] < 60_000, idle
        since = idle.json["generation"]
        late = server.request("GET", f"/sessions/lives/idle?timeout_ms=50&max_wait_ms=200&last_generation={since}")
        assert late.status == 408, late
        assert server.get("/sessions/lives/input/mode")["mode"] == "capture"
        # a new session with an end of its own makes housekeeping look around
        server.request("POST", "/sessions", {"name": "third", "command": "true"})
        wait_until(lambda: not server.get("/sessions/third")["running"], "the third's end")
        assert {info["name"] for info in server.get("/sessions")} == {"lives", "ended", "third"}


def test_how_long_ago_a_session_ended_is_counted_without_the_clock_on_the_wall() -> None:
    session = Session.__new__(Session)
    now = read_moment()
    for wall in (0.0, now.wall, now.wall * 2):
        session.end = Moment(wall, now.boot, now.up - 100)
        assert 100 <= session.ended_s < 100 + 3600
    session.end = Moment(now.wall - 100, "another", 0.0)
    assert 100 <= session.ended_s < 100 + 3600
    session.end = Moment(now.wall * 2, "another", 0.0)  # ended under a clock that was ahead
    assert session.ended_s == 0.0


def test_what_ended_before_a_jump_is_there_for_the_server_that_starts_after_it(places: Places, tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    first = start_server(places, environ=clock.environ)
    try:
        first.request("POST", "/sessions", {"name": "ended", "command": "echo it is over"})
        wait_until(lambda: not first.get("/sessions/ended")["running"], "its end")
    finally:
        first.stop()  # which leaves what there is to the next one
    clock.jump(_JUMPS["+9y"])
    with running_server(places, environ=clock.environ) as server:
        for number in range(2):  # each end makes housekeeping look around
            server.request("POST", "/sessions", {"name": f"other{number}", "command": "true"})
            wait_until(lambda number=number: not server.get(f"/sessions/other{number}")["running"], "its end")  # type: ignore[misc]
        assert {info["name"] for info in server.get("/sessions")} == {"ended", "other0", "other1"}


@pytest.mark.parametrize("jump", list(_JUMPS))
def test_a_request_that_waits_for_a_person_neither_ends_nor_is_answered_by_a_jump(
    places: Places, tmp_path: Path, jump: str
) -> None:
    clock = Clock(tmp_path)
    places.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.config_file.write_text("[approvals]\nweb = true\n")
    with (
        running_server(places, environ=clock.environ, expect_alive=True) as server,
        running_desktop(places.desktop_info, "ignore", page_answers=True),
        asking(server, "echo", "jumped", timeout_ms=250_000) as caller,
    ):
        clock.jump(_JUMPS[jump])
        shown = caller._find("jumped")
        assert shown, "it waits"
        assert 0 < shown[0]["deadline"] - (time.time() + _JUMPS[jump]) < 300
        reply = caller.answer()
        assert reply.status == 200 and reply.json["state"] == "approved", reply
        assert "jumped" in caller.result()["result"]["stdout"]
