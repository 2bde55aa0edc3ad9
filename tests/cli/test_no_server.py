"""Commands that only read where no server runs: they start none, and say what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sandbox.held import make_project
from tests.support.serving import running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.sandbox import bubblewrap
from wsh.wire.system.place import Places


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wsh.cli.main", *words]
    return run_warm(command, text=True, timeout=120)


@pytest.mark.parametrize("words", ["notify", "notify list", "screen a", "fleet list"])
def test_a_reading_command_starts_no_server_and_says_how_to(places: Places, words: str) -> None:
    done = run(*words.split())
    assert done.returncode == 6, done
    assert "none runs" in done.stderr and "`wsh server`" in done.stderr
    assert not os.path.exists(places.socket)


def test_the_index_is_read_from_disk_without_a_server(places: Places, tmp_path: Path) -> None:
    for words, status, said in (("search needle", 1, "wsh index build"), ("index status", 0, "There is no index")):
        done = run(*words.split(), "-w", str(tmp_path)) if "search" in words else run(*words.split(), str(tmp_path))
        assert done.returncode == status and said in done.stdout + done.stderr, done
    assert not os.path.exists(places.socket)


@pytest.mark.usefixtures("no_supervisor")
def test_after_a_kill_the_person_is_told_that_the_sessions_are_safe(places: Places, tmp_path: Path) -> None:
    with running_server(places) as server:
        server.request("POST", "/sessions", {"name": "kept", "command": "sleep 600"})
        wait_until(lambda: list(places.sessions.glob("*/meta.json")), "the session's description on disk")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
        told = run("list")
        assert told.returncode == 0 and "kept" in told.stdout and "sleep 600" in told.stdout
        assert "`wsh attach NAME`" in told.stderr
        for words in (["screen", "kept"], ["status"]):
            done = run(*words)
            assert done.returncode == 6
            assert "keeper holds them" in done.stdout + done.stderr, words
            assert "`wsh attach`" in done.stdout + done.stderr
        assert run("resize", "kept", "20", "70").returncode == 0, "a command that changes brings them back"
        wait_until(lambda: "kept" in run("list").stdout, "the session in the list of the new server")
        assert run("stop").returncode == 0


def test_sessions_that_ended_are_listed_when_their_server_has_ended_too(places: Places) -> None:
    with running_server(places, check_left=False) as server:
        server.request("POST", "/sessions", {"name": "over", "command": "sh -c 'exit 3'"})
        wait_until(lambda: "exited 3" in run("list").stdout, "the end of the only session")
        described = places.sessions.glob
        wait_until(lambda: any('"exit_code": 3' in file.read_text() for file in described("*/meta.json")), "it on disk")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
        told = run("list")
        assert told.returncode == 0 and "exited 3" in told.stdout, told
        assert "keeper holds them" not in run("screen", "over").stderr, "nothing goes on"
        assert json.loads(run("list", "--json").stdout)[0]["running"] is False


@pytest.mark.parametrize(("word", "ours"), [("ls", "list"), ("kill-session", "kill"), ("lst", "list")])
def test_a_command_that_other_programs_call_otherwise_is_named(word: str, ours: str) -> None:
    assert f"Did you mean {ours}?" in run(word).stderr


@pytest.mark.usefixtures("no_supervisor")
def test_inside_of_a_session_no_server_is_started_that_would_end_with_it(places: Places, tmp_path: Path) -> None:
    go, said, status = (tmp_path / name for name in ("go", "said", "status"))
    attach = f"{sys.executable} -m wsh.cli.main attach other 2>{said}; echo $? >{status}"
    with running_server(places) as server:
        command = f"until [ -e {go} ]; do sleep 0.05; done; {attach}; exec sleep 600"
        assert server.request("POST", "/sessions", {"name": "inner", "command": command}).status == 201
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
        go.touch()
        wait_until(
            lambda: status.exists() and status.read_text() == "6\n", "the end of wsh attach", seen=said.read_text
        )
        assert "inside of a session would end with that" in said.read_text()
        assert "from a terminal outside of wsh" in said.read_text()
        assert run("resize", "inner", "20", "70").returncode == 0, "from outside it is brought back"
        assert run("stop").returncode == 0


@pytest.mark.accept
@pytest.mark.usefixtures("no_supervisor")
@pytest.mark.parametrize("words", ["stop", "kill held"])
def test_what_a_sandbox_made_is_taken_away_by_who_ends_its_session(places: Places, tmp_path: Path, words: str) -> None:
    missing = bubblewrap.find_missing()
    if missing is not None:
        pytest.skip(missing)
    project = make_project(tmp_path)
    with running_server(places, check_left=False) as server:
        asked = {"name": "held", "command": "sleep 600", "cwd": str(project), "sandbox": "workspace"}
        assert server.request("POST", "/sessions", asked).status == 201
        wait_until(lambda: list(places.sessions.glob("*/meta.json")), "the session's description on disk")
        assert (project / ".git").is_dir()
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
        assert run(*words.split()).returncode == 0
        assert list(project.iterdir()) == [] and list((places.state / "sandbox").iterdir()) == []
        run("stop")
