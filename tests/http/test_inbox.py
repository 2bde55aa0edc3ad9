"""The inbox over HTTP and from the command line: what comes into it, in which order, and what is put aside for good."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.http.test_server_approval import ask, shown
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places, find_places

ASK = "sh -c 'printf \"go on? [y/N] \"; read answer'"
SHELL = "bash --norc --noprofile"
QUICK = {"WSH_APPROVALS_SERVER": "true", "WSH_INBOX_MIN_COMMAND_S": "0.05"}


@pytest.fixture
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places, environ=QUICK, check_left=False) as running:
        yield running


@pytest.fixture
def places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Places:
    folder = tmp_path_factory.mktemp("inbox")
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / name).mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(folder / name))
    return find_places()


def make(server: RunningServer, name: str, command: str, state: str) -> None:
    assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201
    wait_until(
        lambda: server.get(f"/sessions/{name}")["state"] == state,
        f"{name} to be {state}",
        seen=lambda: server.get(f"/sessions/{name}"),
    )


def run(server: RunningServer, name: str, line: str) -> None:
    assert "exit_code" in server.request("POST", f"/sessions/{name}/run", {"input": line}, timeout=90).json


def entries(server: RunningServer, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"/inbox{query}")["items"]
    return found


def kinds(server: RunningServer, query: str = "") -> list[tuple[str, str | None]]:
    return [(one["kind"], one["session"]) for one in entries(server, query)]


def wsh(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wsh.cli.main", *words]
    return run_warm(command, text=True, timeout=120)


def test_what_waits_comes_first_and_an_idle_shell_not_at_all(server: RunningServer) -> None:
    make(server, "calm", SHELL, "idle")
    make(server, "editor", "vim -u NONE -i NONE -n", "open")
    make(server, "busy", "sleep 1000", "running")
    assert entries(server) == []
    make(server, "secret", "sh -c 'stty -echo; printf \"password: \"; read answer'", "hidden")
    make(server, "question", ASK, "asks")
    run(server, "calm", "true")
    run(server, "calm", "sleep 0.1")
    run(server, "calm", "sh -c 'exit 7'")
    answer = ask(server, "true")
    request = shown(server, answer)
    found = entries(server)
    assert kinds(server) == [
        ("request", None),
        ("hidden", "secret"),
        ("asks", "question"),
        ("failed", "calm"),
        ("finished", "calm"),
    ]
    assert server.get("/inbox")["wants"] == 3 and [one["wants"] for one in found] == [True, True, True, False, False]
    by_kind = {one["kind"]: one for one in found}
    assert by_kind["request"]["request_id"] == request["id"] and by_kind["request"]["what"] == "true"
    assert by_kind["hidden"]["line"] == "password:" and by_kind["asks"]["line"] == "go on? [y/N]"
    assert by_kind["failed"]["exit_code"] == 7 and by_kind["failed"]["what"] == "sh -c 'exit 7'"
    assert by_kind["finished"]["what"] == "sleep 0.1" and by_kind["finished"]["duration_ms"] >= 100
    assert all(one["age_ms"] >= 0 and one["since"] > 1_600_000_000 for one in found)
    words = {line.split("\t")[0]: line.split("\t")[1] for line in wsh("list").stdout.splitlines()}
    assert words == {"calm": "idle", "editor": "open", "busy": "running", "secret": "hidden", "question": "asks"}
    assert "go on? [y/N]" in wsh("inbox").stdout
    assert json.loads(wsh("inbox", "--json").stdout)["wants"] == 3
    assert server.request("POST", "/inbox/" + by_kind["request"]["id"], {"action": "done"}).code == "invalid_request"


def test_what_has_ended_comes_newest_first_whatever_its_kind(server: RunningServer) -> None:
    make(server, "calm", SHELL, "idle")
    for line in ("false", "sleep 0.1", "sh -c 'exit 7'", "sleep 0.2"):
        run(server, "calm", line)
    assert [one["what"] for one in entries(server)] == ["sleep 0.2", "sh -c 'exit 7'", "sleep 0.1", "false"]


def test_taking_back_a_line_that_does_not_wait_names_the_command_that_lists_them(server: RunningServer) -> None:
    assert server.get("/wakes")["wakes"] == []
    done = wsh("wake", "--cancel", "nope")
    assert done.returncode == 3 and "`wsh wake` lists" in done.stderr


def test_an_agent_has_no_inbox(server: RunningServer) -> None:
    agent = {"wsh-role": "agent"}
    assert server.request("GET", "/inbox", headers=agent).status == 403
    assert server.request("POST", "/inbox/x", {"action": "done"}, headers=agent).status == 403


def test_a_question_that_was_answered_leaves_and_the_next_one_is_new(server: RunningServer) -> None:
    make(server, "twice", 'sh -c \'printf "first? "; read a; printf "second? "; read b\'', "asks")
    first = entries(server)[0]
    assert server.request("POST", f"/inbox/{first['id']}", {"action": "done"}).json["wants"] == 0
    assert entries(server) == []
    assert server.request("POST", "/sessions/twice/input", b"y\r").status < 300
    wait_until(lambda: [one["line"] for one in entries(server)] == ["second?"], seen=lambda: entries(server))
    assert server.request("POST", f"/inbox/{first['id']}", {"action": "done"}).status == 404


def test_a_program_that_ended_is_in_the_inbox_but_a_shell_that_was_left_is_not(server: RunningServer) -> None:
    for name, command in (("good", "true"), ("bad", "sh -c 'exit 4'"), ("left", SHELL)):
        assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201
    wait_until(lambda: server.get("/sessions/left")["state"] == "idle", "a prompt")
    server.request("POST", "/sessions/left/input", b"exit\r")
    wait_until(lambda: all(not one["running"] for one in server.get("/sessions")), "their ends")
    assert sorted(kinds(server)) == [("failed", "bad"), ("finished", "good")]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (b"exit 3\r", []),
        (b"true; exit 3\r", []),
        (b"false\r\x04", [("failed", "false", 1)]),
        (b"exec sh -c 'exit 4'\r", [("failed", "exec sh -c 'exit 4'", 4)]),
        (b"kill -9 $$\r", [("failed", SHELL, 137)]),
    ],
)
def test_a_shell_that_was_left_is_not_told_whatever_its_status(
    places: Places, typed: bytes, told: list[tuple[str, str, int]]
) -> None:
    def seen(server: RunningServer) -> list[tuple[str, str, int]]:
        return [(one["kind"], one["what"], one["exit_code"]) for one in entries(server)]

    server = start_server(places, environ=QUICK)
    try:
        make(server, "left", SHELL, "idle")
        line, end = typed.partition(b"\r")[::2]
        server.request("POST", "/sessions/left/input", line + b"\r")
        if end:
            wait_until(lambda: [c["state"] for c in server.get("/sessions/left/commands")] == ["finished"], "its end")
            wait_until(lambda: server.get("/sessions/left")["state"] == "idle", "the prompt")
            server.request("POST", "/sessions/left/input", end)
        wait_until(lambda: not server.get("/sessions/left")["running"], "the shell's end")
        assert seen(server) == told
    finally:
        server.process.kill()
        server.process.wait()
    with running_server(places, environ=QUICK, check_left=False) as after:
        assert seen(after) == told, "the next server says the same"


def test_a_shell_that_fails_before_its_first_prompt_is_told(server: RunningServer) -> None:
    command = "bash --norc --no-such-option"
    assert server.request("POST", "/sessions", {"name": "bad", "command": command}).status == 201
    wait_until(lambda: not server.get("/sessions/bad")["running"], "its end")
    assert [(one["kind"], one["what"], one["exit_code"]) for one in entries(server)] == [("failed", command, 2)]


def test_what_was_interrupted_is_no_failure(server: RunningServer) -> None:
    make(server, "work", SHELL, "idle")
    server.request("POST", "/sessions/work/input", b"sleep 1000\r")
    wait_until(lambda: (server.get("/sessions/work/state")["foreground"] or {})["name"] == "sleep", "sleep")
    server.request("POST", "/sessions/work/input", b"\x03")
    wait_until(lambda: server.get("/sessions/work")["state"] == "idle", "the prompt")
    wait_until(lambda: [c["exit_code"] for c in server.get("/sessions/work/commands")] == [130], "its end")
    assert entries(server) == []


def test_done_and_snoozed_survive_a_kill_of_the_server(places: Places) -> None:
    server = start_server(places, environ=QUICK)
    try:
        make(server, "work", SHELL, "idle")
        run(server, "work", "sh -c 'exit 2'")
        run(server, "work", "sh -c 'exit 3'")
        make(server, "question", ASK, "asks")
        by_code = {one["exit_code"]: one["id"] for one in entries(server)}
        assert wsh("inbox", "done", by_code[2]).returncode == 0
        assert wsh("inbox", "snooze", "--for", "1d", by_code[3]).returncode == 0
        assert kinds(server) == [("asks", "question")]
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
    except BaseException:
        server.process.kill()
        server.process.wait()
        raise
    with running_server(places, environ=QUICK, check_left=False) as after:
        wait_until(lambda: kinds(after) == [("asks", "question")], seen=lambda: entries(after))
        aside = {one["exit_code"]: one for one in entries(after, "?all=true")}
        assert aside[2]["done"] and aside[3]["snoozed_until"] > aside[3]["since"]
        assert wsh("inbox", "restore", by_code[3]).returncode == 0
        assert ("failed", "work") in kinds(after)
        assert wsh("inbox", "done", "nothing-like-it").returncode == 3
        assert wsh("inbox", "snooze", "--for", "soon", by_code[3]).returncode == 2


def test_what_was_snoozed_comes_back_however_many_commands_have_ended_since(server: RunningServer) -> None:
    make(server, "work", SHELL, "idle")
    run(server, "work", "sh -c 'exit 42'")
    id = entries(server)[0]["id"]
    assert server.request("POST", f"/inbox/{id}", {"action": "snooze", "for_s": 3}).json["items"] == []
    for number in range(6):
        run(server, "work", f"sh -c 'exit {number + 1}'")
    wait_until(lambda: id in [one["id"] for one in entries(server)], "its return", seen=lambda: entries(server))
    assert [one["exit_code"] for one in entries(server)] == [6, 5, 4, 3, 2, 42]
    assert server.request("POST", f"/inbox/{id}", {"action": "done"}).status == 200
    assert [one["exit_code"] for one in entries(server)] == [6, 5, 4, 3, 2]


def test_a_broken_file_of_marks_costs_nothing_but_the_marks(places: Places) -> None:
    places.inbox.parent.mkdir(parents=True, mode=0o700)
    places.inbox.write_bytes(b'{"x": [1, "\xff')
    with running_server(places, environ=QUICK, check_left=False) as server:
        make(server, "question", ASK, "asks")
        found = entries(server)
        assert server.request("POST", f"/inbox/{found[0]['id']}", {"action": "snooze", "for_s": 60}).status == 200
        assert entries(server) == []
        bad = server.request("POST", f"/inbox/{found[0]['id']}", {"action": "done", "for_s": 60})
        assert bad.status == 400


def test_a_websocket_asks_for_the_inbox_with_an_id_that_is_no_text(server: RunningServer) -> None:
    with connect(server.ws_url + "/ws/json", additional_headers=server.auth) as ws:
        assert json.loads(ws.recv(60)) == {"connected": True}
        ws.send('{"id": "\\ud800", "method": "list_inbox", "params": {}}')
        answer = json.loads(ws.recv(60))
    assert answer["id"] == "\ud800" and answer["result"] == {"items": [], "wants": 0}
