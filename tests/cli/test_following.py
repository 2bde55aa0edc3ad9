"""`wsh run` shows lines while a command runs, and waits for its end however long that takes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.cli.following import wait_on
from wsh.wire.error import WaitTimeout
from wsh.wire.system.place import Places

WSH = [sys.executable, "-m", "wsh.cli.main"]


@pytest.fixture
def server(places: Places) -> Iterator[RunningServer]:
    """One request may wait for half a second only, so that every longer command outlives its request."""
    with running_server(places, environ={"WSH_SERVER_MAX_WAIT_MS": "500"}) as server:
        subprocess.run([*WSH, "new", "--name", "work", "bash", "--norc"], check=True, timeout=60, capture_output=True)
        # The shell has come to its prompt before the short requests begin.
        server.request("GET", "/sessions/work/idle?prompt=true&max_wait_ms=500")
        wait_until(lambda: server.get("/sessions/work/state")["at_prompt"] == "yes", what="the prompt")
        yield server


def make_gate(folder: Path) -> Path:
    """A pipe that a command reads, so that the test says when it goes on."""
    gate = folder / "gate"
    os.mkfifo(gate)
    return gate


def test_a_command_that_outlives_its_request_is_waited_for(server: RunningServer, tmp_path: Path) -> None:
    gate = make_gate(tmp_path)
    words = [*WSH, "run", "--json", "work", f"echo first; read line < {gate}; echo $line; (exit 3)"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    with gate.open("w") as out:  # opens when the command reads
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1.0)
        out.write("second\n")
    told, _ = running.communicate(timeout=60)
    done = json.loads(told)
    assert running.returncode == 3 and done["exit_code"] == 3
    assert done["output"] == "first\nsecond" and done["finished_by"] == "command"


def test_lines_are_shown_on_a_terminal_while_the_command_runs(server: RunningServer, tmp_path: Path) -> None:
    gate = make_gate(tmp_path)
    master, slave = pty.openpty()
    words = [*WSH, "run", "work", f"echo first; echo begun; read line < {gate}; echo $line"]
    running = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    seen = bytearray()

    def read() -> None:
        try:
            while data := os.read(master, 65536):
                seen.extend(data)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with gate.open("w") as out:
        wait_until(lambda: b"first" in seen, what="a line of the running command")
        assert running.poll() is None
        out.write("second\n")
    assert running.wait(60) == 0
    reader.join(60)
    os.close(master)
    assert seen.decode().split() == ["first", "begun", "second"]


def test_a_deadline_that_was_asked_for_holds(server: RunningServer, tmp_path: Path) -> None:
    gate = make_gate(tmp_path)
    words = [*WSH, "run", "--max-wait-ms", "200", "work", f"read line < {gate}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "`wsh wait --command work`" in done.stderr
    gate.write_text("go on\n")


def test_a_run_says_what_it_waits_for_and_begins_when_that_has_ended(server: RunningServer, tmp_path: Path) -> None:
    gate = make_gate(tmp_path)
    server.request("POST", "/sessions/work/input", f"cat {gate}; (exit 3)\r".encode())
    wait_until(lambda: server.get("/sessions/work/state")["at_prompt"] == "no", what="the program")
    late = subprocess.run([*WSH, "run", "--max-wait-ms", "300", "work", "echo lost"], capture_output=True, text=True)
    assert late.returncode == 4 and not late.stdout
    assert f"`cat {gate}` still runs" in late.stderr and "nothing was typed" in late.stderr
    assert "wsh wait --prompt work" in late.stderr
    words = [*WSH, "run", "work", "echo own; (exit 5)"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert f"`cat {gate}` runs and reads nothing" in running.stderr.readline()
    gate.write_text("")
    told, _ = running.communicate(timeout=60)
    assert (told, running.returncode) == ("own\n", 5)
    assert [command["command"] for command in server.get("/sessions/work/commands")][1:] == ["echo own; (exit 5)"]


def test_a_command_that_had_not_begun_at_the_deadline_is_waited_for(server: RunningServer) -> None:
    subprocess.run([*WSH, "run", "work", "echo earlier"], check=True, timeout=60, capture_output=True)
    generation = server.get("/sessions/work/idle?timeout_ms=0&max_wait_ms=400")["generation"]
    late = WaitTimeout("It has not begun.", timeout_ms=500, command_id=None, generation=generation)
    server.request("POST", "/sessions/work/input", b"echo own; (exit 5)\r")
    done = wait_on("work", late)
    assert (done["finished_by"], done["exit_code"], done["output"]) == ("command", 5, "own")


def test_a_status_that_nobody_tells_is_not_0(server: RunningServer) -> None:
    subprocess.run([*WSH, "new", "--name", "plain", "cat"], check=True, timeout=60, capture_output=True)
    words = [*WSH, "run", "--timeout-ms", "100", "plain", "hello"]
    answered = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert answered.returncode == 0 and "hello" in answered.stdout, "cat waits for more input"
    subprocess.run([*WSH, "new", "--name", "mute", "sleep", "1000"], check=True, timeout=60, capture_output=True)
    words[-2] = "mute"
    silent = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert silent.returncode == 7 and "status is not known" in silent.stderr
