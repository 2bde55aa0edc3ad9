"""`wsh record` where there is no terminal, as in a pipe or a CI job."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.serving import running_server
from tests.support.warm import run_warm
from wsh.cli import record
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]


def printed(cast: Path) -> str:
    events = [json.loads(line) for line in cast.read_text().splitlines()[1:]]
    return "".join(text for _, kind, text in events if kind == "o")


def test_without_a_terminal_a_command_is_recorded_and_its_status_passed_on(places: Places, tmp_path: Path) -> None:
    cast = tmp_path / "it.cast"
    # Each request may wait for 100 ms, so the end is asked for again and again.
    with running_server(places, environ={"WSH_SERVER_MAX_WAIT_MS": "100"}):
        words = ["record", "-o", str(cast), "sh", "-c", "echo first; sleep 0.5; stty size; exit 3"]
        done = run_warm([*WSH, *words], text=True)
        assert (done.returncode, done.stdout) == (3, ""), done.stderr
        assert done.stderr == f"written to {cast}\n"
        assert printed(cast) == "first\r\n24 80\r\n"


def test_without_a_terminal_and_a_command_nothing_is_begun(places: Places, tmp_path: Path) -> None:
    with running_server(places) as server:
        done = run_warm([*WSH, "record", "-o", str(tmp_path / "it.cast")], text=True)
        assert done.returncode == 2 and "name a COMMAND" in done.stderr
        assert server.get("/sessions") == [] and not (tmp_path / "it.cast").exists()


def test_without_a_terminal_an_interrupt_is_typed_for_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def call(method: str, path: str, **more: object) -> dict[str, object]:
        asked.append(f"{method} {path}")
        if len(asked) == 1:
            raise SystemExit(130)  # as `call` does at Ctrl+C
        return {"exit_code": 5}

    monkeypatch.setattr(record, "call", call)
    assert record._wait_for_end("job") == 5
    waiting = "GET /sessions/job/idle"
    assert asked == [waiting, "POST /sessions/job/keys", waiting, "GET /sessions/job"]


def test_a_status_that_nobody_could_tell_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "call", lambda *_, **__: {"exit_code": None})
    assert record._wait_for_end("job") == 7


def test_a_folder_in_place_of_the_file_is_told_before_anything_runs(places: Places, tmp_path: Path) -> None:
    done = run_warm([*WSH, "record", "-o", str(tmp_path), "true"], text=True)
    assert (done.returncode, places.socket.exists()) == (2, False) and f"{tmp_path} is a folder" in done.stderr
