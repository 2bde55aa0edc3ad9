"""The clock on the wall jumps by years, both ways, and nothing that is about durations notices."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.session.session import Session
from wsh.wire.place import Places

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class Clock:
    """The clock that a server sees; its monotonic clock goes on as it should."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.jump("+0")

    @property
    def environ(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, by: str) -> None:
        """To so much before (`-1y`) or after (`+10y`) the real time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{by}\n")
        fresh.replace(self._file)


def year_of(server: RunningServer) -> int:
    return int(server.request("GET", "/health").headers["date"].split()[3])


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


@pytest.mark.skipif(not LIBRARIES or not shutil.which("faketime"), reason="libfaketime is not installed")
@pytest.mark.parametrize("jump", ["+9y", "-9y", "+25h"])
def test_waits_tickets_leases_and_retention_do_not_follow_the_clock(places: Places, tmp_path: Path, jump: str) -> None:
    clock = Clock(tmp_path)
    with running_server(places, environ=clock.environ, expect_alive=True) as server:
        before = year_of(server)
        server.request("POST", "/sessions", {"name": "lives", "command": "bash --norc"})
        server.request("POST", "/sessions", {"name": "ended", "command": "echo it is over"})
        wait_until(lambda: not server.get("/sessions/ended")["running"], "its end")
        assert server.request("POST", "/sessions/lives/run", {"input": "echo one"}).json["output"].strip() == "one"
        early = ticket(server)
        captured = server.request("POST", "/sessions/lives/input/capture")
        assert captured.status in (200, 204), captured

        clock.jump(jump)
        if "y" in jump:
            wait_until(lambda: year_of(server) - before == int(jump[:-1]), "the server to see the jump")
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
    session.ended = time.time() - 100
    assert 100 <= session.ended_s < 100 + 3600
    session.ended = time.time() + 10 * 365 * 86_400  # ended under a clock that was ahead
    assert 0 <= session.ended_s < 3600
