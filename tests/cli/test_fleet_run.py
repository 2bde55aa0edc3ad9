"""`wsh fleet run`: what is told of each node, with the answers of the nodes in the test's hands."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from wsh.cli import fleet_run
from wsh.wire.error import HostUnreachable, WshError

RUNNING: dict[str, Any] = {"status": "accepted", "identity": {"session_id": "s1"}}


def run(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[dict[str, Any]]:
    monkeypatch.setattr(
        fleet_run, "call", lambda method, path, **words: answer(words["query"]["host"], words["json_body"])
    )
    nodes = [{"name": name, "here": False} for name in ("gpu1", "web1")]
    return fleet_run.run_everywhere(nodes, ("make",), 600.0, live=False)


@pytest.mark.parametrize(
    ("problem", "state"),
    [(HostUnreachable("gpu1", "it is gone"), "out of reach"), (WshError("no such session"), "lost")],
)
def test_what_was_printed_stays_when_the_node_is_lost(
    monkeypatch: pytest.MonkeyPatch, problem: WshError, state: str
) -> None:
    def answer(host: str, request: dict[str, Any]) -> dict[str, Any]:
        if host == "web1":
            return {"status": "completed", "result": {"stdout": "all\n", "exit_code": 0}}
        if request["action"] == "execute":
            return RUNNING | {"result": {"stdout": "half", "next_cursor": 4}}
        raise problem

    lost, done = run(monkeypatch, answer)
    assert (lost["state"], lost["exit_code"], lost["output"]) == (state, None, f"half\n{problem.message}")
    assert (done["state"], done["exit_code"], done["output"]) == ("ended", 0, "all\n")


def test_control_c_ends_the_waiting_and_shows_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    over, main = threading.Event(), threading.get_ident()
    told = threading.Barrier(2)

    def answer(host: str, request: dict[str, Any]) -> dict[str, Any]:
        if request["action"] == "execute":
            return RUNNING | {"result": {"stdout": f"{host} began\n", "next_cursor": 4}}
        if told.wait() == 0:
            signal.pthread_kill(main, signal.SIGINT)
        over.wait()
        return {"status": "completed", "result": {"exit_code": 0}}

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        done = run(monkeypatch, answer)
        assert [(one["node"], one["state"], one["output"]) for one in done] == [
            ("gpu1", "still running", "gpu1 began\n"),
            ("web1", "still running", "web1 began\n"),
        ]
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
