"""A line that is typed into a session when a command of another one has ended: once, onto an empty line, and over a crash."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.test_inbox import SHELL, make, run, wsh
from tests.http.test_inbox import places as places
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places

READER = """python3 -c '
import os, sys, termios, tty
tty.setraw(0)
FULL and os.write(1, b"\\x1b[?1049h")
os.write(1, b"agent ready\\r\\n")
while True:
    got = os.read(0, 4096)
    os.write(1, b"got:" + repr(got).encode() + b"\\r\\n")
'"""
"""A program that reads keys by itself, as agents in terminals do; it shows each read."""


@pytest.fixture
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places, check_left=False) as running:
        yield running


def make_reader(server: RunningServer, name: str, *, full: bool = False) -> None:
    command = READER.replace("FULL", str(full))
    assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201
    wait_until(lambda: "agent ready" in screen(server, name), "the program", seen=lambda: screen(server, name))


def screen(server: RunningServer, name: str) -> str:
    return "\n".join(str(line) for line in server.get(f"/sessions/{name}/screen?format=plain")["lines"])


def wake(server: RunningServer, session: str, when: str, line: str) -> dict[str, Any]:
    answer = server.request("POST", f"/sessions/{session}/wake", {"when": when, "line": line})
    assert answer.status == 201, answer
    found: dict[str, Any] = answer.json
    assert found["state"] == "waiting"
    return found


def states(server: RunningServer) -> list[tuple[str, str]]:
    return [(one["state"], one["why"]) for one in server.get("/wakes")["wakes"]]


def wait_for(server: RunningServer, state: str) -> str:
    wait_until(lambda: states(server)[-1][0] == state, f"it to be {state}", seen=lambda: states(server))
    return states(server)[-1][1]


def type_keys(server: RunningServer, name: str, data: bytes) -> None:
    assert server.request("POST", f"/sessions/{name}/input", data).status < 300


def test_a_shell_is_woken_once_when_the_other_command_ends(server: RunningServer) -> None:
    make(server, "agent", SHELL, "idle")
    make(server, "build", SHELL, "idle")
    run(server, "build", "true")
    wake(server, "agent", "build", "echo wo''ken")
    assert states(server) == [("waiting", "")]
    run(server, "build", "sh -c 'exit 3'")
    wait_for(server, "typed")
    run(server, "build", "true")
    run(server, "agent", "true")
    commands = [one["command"] for one in server.get("/sessions/agent/commands")]
    assert commands == ["echo wo''ken", "true"]
    assert "woken" in screen(server, "agent")


@pytest.mark.parametrize("command", ["zsh -f", "fish --no-config", "sh"])
def test_other_shells_are_woken_too(server: RunningServer, command: str) -> None:
    if shutil.which(command.split()[0]) is None:
        pytest.skip("not installed")
    make(server, "agent", command, "idle")
    make(server, "build", SHELL, "idle")
    wake(server, "agent", "build", "echo wo''ken")
    run(server, "build", "true")
    assert wait_for(server, "typed") == ""
    wait_until(lambda: "woken" in screen(server, "agent"), seen=lambda: screen(server, "agent"))


@pytest.mark.parametrize("full", [False, True])
def test_a_program_that_reads_keys_gets_text_and_then_enter(server: RunningServer, full: bool) -> None:
    make_reader(server, "agent", full=full)
    make(server, "build", SHELL, "idle")
    wake(server, "agent", "build", "go on, the build ended")
    run(server, "build", "true")
    assert wait_for(server, "typed") == ""
    wait_until(lambda: r"got:b'\r'" in screen(server, "agent"), "Enter", seen=lambda: screen(server, "agent"))
    assert "got:b'go on, the build ended'" in screen(server, "agent")
    assert screen(server, "agent").count("got:") == 2


@pytest.mark.parametrize("kind", ["shell", "keys", "full"])
def test_it_waits_while_something_stands_on_the_line(server: RunningServer, kind: str) -> None:
    if kind == "shell":
        make(server, "agent", SHELL, "idle")
    else:
        make_reader(server, "agent", full=kind == "full")
    make(server, "build", SHELL, "idle")
    wake(server, "agent", "build", "echo late")
    type_keys(server, "agent", b"echo mine")
    wait_until(lambda: "echo mine" in screen(server, "agent"), seen=lambda: screen(server, "agent"))
    run(server, "build", "true")
    assert "no Enter" in wait_for(server, "due")
    assert "late" not in screen(server, "agent")
    type_keys(server, "agent", b"\r")
    wait_for(server, "typed")
    wait_until(lambda: "echo late" in screen(server, "agent"), seen=lambda: screen(server, "agent"))
    assert "echo mineecho" not in screen(server, "agent")


def test_reports_of_the_mouse_are_nobody_typing(server: RunningServer) -> None:
    make_reader(server, "agent", full=True)
    make(server, "build", SHELL, "idle")
    wake(server, "agent", "build", "go on")
    type_keys(server, "agent", b"\x1b[<35;10;5M\x1b[I")
    wait_until(lambda: "35;10;5M" in screen(server, "agent"), seen=lambda: screen(server, "agent"))
    run(server, "build", "true")
    assert wait_for(server, "typed") == ""


def test_a_program_that_came_in_front_later_is_not_typed_into(server: RunningServer) -> None:
    make(server, "agent", SHELL, "idle")
    make(server, "build", SHELL, "idle")
    wake(server, "agent", "build", "echo late")
    type_keys(server, "agent", b"cat\r")
    wait_until(lambda: (server.get("/sessions/agent/state")["foreground"] or {})["name"] == "cat", "cat")
    run(server, "build", "true")
    assert "another program" in wait_for(server, "due")
    type_keys(server, "agent", b"\x04")
    wait_for(server, "typed")
    wait_until(
        lambda: [one["command"] for one in server.get("/sessions/agent/commands")] == ["cat", "echo late"],
        seen=lambda: server.get("/sessions/agent/commands"),
    )


def test_a_hidden_prompt_gets_nothing(server: RunningServer) -> None:
    make(server, "agent", "sh -c 'stty -echo; printf \"password: \"; read answer; stty echo; cat'", "hidden")
    make(server, "build", SHELL, "idle")
    wake(server, "agent", "build", "not a secret")
    run(server, "build", "true")
    wait_for(server, "due")
    type_keys(server, "agent", b"secret\r")
    wait_for(server, "typed")
    wait_until(lambda: screen(server, "agent").count("not a secret") == 2, seen=lambda: screen(server, "agent"))


def test_a_program_of_its_own_counts_when_it_ends_and_a_gone_session_drops_the_line(server: RunningServer) -> None:
    make(server, "agent", SHELL, "idle")
    make(server, "build", "sleep 1000", "running")
    wake(server, "agent", "build", "echo late")
    assert server.request("DELETE", "/sessions/build").status < 300
    wait_for(server, "typed")
    make(server, "again", "sleep 1000", "running")
    wake(server, "agent", "again", "echo never")
    assert server.request("DELETE", "/sessions/agent").status < 300
    assert "ended" in wait_for(server, "dropped")


def test_what_cannot_be_is_refused(server: RunningServer) -> None:
    make(server, "agent", SHELL, "idle")
    agent = {"wsh-role": "agent"}
    good = {"when": "agent", "line": "x"}
    assert server.request("POST", "/sessions/agent/wake", good, headers=agent).status == 403
    assert server.request("GET", "/wakes", headers=agent).status == 403
    assert server.request("DELETE", "/wakes/x", headers=agent).status == 403
    assert server.request("POST", "/sessions/agent/wake", {"when": "none", "line": "x"}).status == 404
    for line in ("", "  ", "a\nb", "a\tb", "\x1b[A", "x" * 2001, "\u2028"):
        assert server.request("POST", "/sessions/agent/wake", good | {"line": line}).code == "invalid_request", line
    assert server.request("DELETE", "/wakes/none").status == 404
    assert wsh("wake", "agent").returncode == 2 and wsh("wake", "--line", "x").returncode == 2
    made = json.loads(wsh("wake", "--json", "agent", "--when", "agent", "--line", "echo never").stdout)
    assert wsh("wake").stdout.startswith("waiting\tagent\tagent\techo never")
    assert wsh("wake", "--cancel", made["id"]).returncode == 0
    run(server, "agent", "true")
    assert states(server) == [("dropped", "you took it back")]
    assert "never" not in screen(server, "agent")


def kill(server: RunningServer) -> None:
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()


def test_it_survives_a_kill_of_the_server_and_is_typed_once(places: Places) -> None:
    server = start_server(places)
    try:
        make(server, "agent", SHELL, "idle")
        make(server, "build", SHELL, "idle")
        wake(server, "agent", "build", "echo once")
        type_keys(server, "build", b"read answer\r")
        wait_until(lambda: server.get("/sessions/build")["state"] == "asks", seen=lambda: screen(server, "build"))
    finally:
        kill(server)
    server = start_server(places)
    try:
        assert states(server) == [("waiting", "")]
        type_keys(server, "agent", b"echo mine")
        type_keys(server, "build", b"yes\r")
        wait_for(server, "due")
    finally:
        kill(server)
    server = start_server(places)
    try:
        assert "no Enter" in wait_for(server, "due")
        type_keys(server, "agent", b"\r")
        wait_for(server, "typed")
    finally:
        kill(server)
    with running_server(places, check_left=False) as last:
        assert states(last) == [("typed", "")]
        run(last, "agent", "true")
        commands = [one["command"] for one in last.get("/sessions/agent/commands")]
        assert commands == ["echo mine", "echo once", "true"]


def test_one_that_was_being_typed_when_the_server_died_is_told_and_not_typed_again(places: Places) -> None:
    server = start_server(places)
    try:
        make(server, "agent", SHELL, "idle")
        make(server, "build", SHELL, "idle")
        wake(server, "agent", "build", "echo twice")
    finally:
        kill(server)
    kept = json.loads(places.wakes.read_bytes())
    places.wakes.write_text(json.dumps([one | {"state": "typing"} for one in kept]))
    with running_server(places, check_left=False) as after:
        assert states(after)[0][0] == "dropped" and "not known" in states(after)[0][1]
        run(after, "build", "true")
        run(after, "agent", "true")
        assert "twice" not in screen(after, "agent")


@pytest.mark.parametrize("content", [b'[{"id": "\xff', b'[{"id": {}, "state": "typed"}]', b"{}", b"[[]]", b"7"])
def test_a_broken_file_costs_nothing_but_the_lines(places: Places, content: bytes) -> None:
    places.wakes.parent.mkdir(parents=True, mode=0o700)
    places.wakes.write_bytes(content)
    with running_server(places, check_left=False) as server:
        assert server.get("/wakes") == {"wakes": []}
        make(server, "agent", SHELL, "idle")
        wake(server, "agent", "agent", "echo fine")
