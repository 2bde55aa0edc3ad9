"""With few descriptors, what cannot be had is refused in time, and what is there goes on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.serving import Reply, RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import customize
from wsh.wire.system.place import Places

WAIT_S = 60.0


def few(folder: Path, number: int) -> dict[str, str]:
    """The environment of a server that may have so many files open."""
    return customize(folder, f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({number}, {number}))")


def create(server: RunningServer, name: str) -> Reply:
    return server.request("POST", "/sessions", {"name": name, "command": "bash --norc"}, timeout=WAIT_S)


@pytest.mark.parametrize("limit", [64, 100])
def test_a_session_for_which_no_descriptors_are_left_is_refused_in_time(
    places: Places, tmp_path: Path, limit: int
) -> None:
    with running_server(places, environ=few(tmp_path, limit), expect_alive=True) as server:
        server.request("POST", "/workspace/check_status", {})  # everything is open that will be
        made: list[str] = []
        while (reply := create(server, f"s{len(made)}")).status == 201:
            made.append(f"s{len(made)}")
        assert (reply.status, reply.code) == (503, "no_descriptors"), reply
        assert len(made) >= 5, made
        # what there is goes on
        for name in made:
            ran = server.request("POST", f"/sessions/{name}/run", {"input": f"echo {name} lives"}, timeout=WAIT_S)
            assert ran.status == 200 and f"{name} lives" in ran.json["output"], ran
        assert server.request("POST", "/workspace/check_status", {}).status == 200
        # killing one makes room for another, as often as wanted
        for number in range(3):
            assert server.request("DELETE", f"/sessions/{made[0]}", timeout=WAIT_S).status == 204
            wait_until(lambda: create(server, made[0]).status == 201, f"room for another, round {number}")
        assert "Traceback" not in server.output.read_text()


def test_many_at_once_are_all_answered_when_descriptors_run_out(places: Places, tmp_path: Path) -> None:
    with running_server(places, environ=few(tmp_path, 64), expect_alive=True) as server:
        replies: list[Reply] = []

        def one(number: int) -> None:
            replies.append(create(server, f"s{number}"))

        for start in range(0, 60, 6):  # few at a time: connections need descriptors as well
            threads = [threading.Thread(target=one, args=(start + number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(replies) == 60
        assert {reply.status for reply in replies} == {201, 503}, [reply.status for reply in replies]
        made = sum(reply.status == 201 for reply in replies)
        assert len(server.get("/sessions")) == made
        for number in range(60):
            server.request("DELETE", f"/sessions/s{number}", timeout=WAIT_S)
        assert create(server, "after").status == 201
