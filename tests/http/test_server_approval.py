"""A headless server: asked by an agent, answered by its person at the command line or the page, run in a session; never by an agent."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.host import StdioHost
from tests.support.serving import Reply, RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places, find_places

TOOL = "memory_terminal_interactive"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("headless")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        # A shell without anybody's start files.
        patch.setenv("HOME", str(folder))
        patch.setenv("SHELL", "/bin/bash")
        yield find_places()


@pytest.fixture(scope="module")
def server(places: Places) -> Iterator[RunningServer]:
    """Turned on as a person does it, before and while a server runs."""
    assert wsh("approvals", "on").returncode == 0
    assert "server = true" in places.config_file.read_text()
    with running_server(places, check_left=False) as running:
        yield running


def wsh(*words: str, input: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    return run_warm(
        [sys.executable, "-m", "wsh.cli.main", *words],
        input=input,
        text=True,
        timeout=120,
        env={**os.environ, **environ},
    )


def execute(*argv: str, timeout_ms: int = 100, **runtime: Any) -> dict[str, Any]:
    return {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": argv[0], "args": list(argv[1:])},
        "runtime": {"timeout_ms": timeout_ms, "cwd": "/", **runtime},
    }


def ask(server: RunningServer, *argv: str, **runtime: Any) -> dict[str, Any]:
    """Over a bearer's POST, as an agent; pending when it comes back."""
    reply = server.request("POST", "/terminal", execute(*argv, **runtime), headers={"wsh-role": "agent"}, timeout=60)
    answer: dict[str, Any] = reply.json
    assert answer["result"]["approval"] == "pending", answer
    return answer


def read(server: RunningServer, answer: dict[str, Any], timeout_ms: int = 20_000) -> dict[str, Any]:
    body = {
        "action": "read_output",
        "target": {**answer["identity"], "cursor": 0},
        "runtime": {"timeout_ms": timeout_ms},
    }
    found: dict[str, Any] = server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60).json
    return found


def read_end(server: RunningServer, answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = wait_until(lambda: (one := read(server, answer))["status"] != "accepted" and one, "its end")
    return found


def shown(server: RunningServer, answer: dict[str, Any]) -> dict[str, Any]:
    """The request as its person sees it, once it is shown."""
    path = f"/approvals/{answer['result']['approval_id']}"
    found: dict[str, Any] = wait_until(lambda: (one := server.get(path))["digest"] and one, "the card")
    return found


def test_an_agent_over_mcp_waits_and_the_command_line_approves(server: RunningServer) -> None:
    with StdioHost() as client:
        client.initialize()
        arguments = execute("sh", "-c", "echo out; echo more; exit 5")
        answer = client.call(TOOL, arguments)["result"]["structuredContent"]
        assert (answer["status"], answer["result"]["approval"]) == ("accepted", "pending")
        one = shown(server, answer)
        assert one["place"] == "server" and "server" in one["evidence"]["place_name"]
        assert one["answerable"] is True
        listed = wsh("approvals", "list")
        assert one["id"] in listed.stdout and "waiting" in listed.stdout, listed
        card = wsh("approvals", "show", one["id"])
        assert "echo more" in card.stdout and "asked by" in card.stdout
        done = wsh("approvals", "approve", one["id"])
        assert done.returncode == 0 and "Approved" in done.stdout and "wsh attach" in done.stdout, done
        follow = {"action": "read_output", "target": answer["identity"], "runtime": {"timeout_ms": 20_000}}
        end = wait_until(
            lambda: (
                (found := client.call(TOOL, follow)["result"]["structuredContent"])["status"] == "completed" and found
            ),
            "end",
        )
        assert end["result"]["exit_code"] == 5
        whole = client.call(TOOL, {"action": "read_output", "target": {**answer["identity"], "cursor": 0}})
        assert whole["result"]["structuredContent"]["result"]["stdout"].split() == ["out", "more"]
    after = shown(server, answer)
    assert after["run"]["exit_code"] == 5 and "more" in after["run"]["output"] and after["where"] == "shell"
    session = server.get(f"/sessions/{after['run']['session']}")
    assert session["exit_code"] == 5, "an ordinary session, which everybody can look at"
    assert after["run"]["session"] in wsh("approvals", "show", after["id"]).stdout


def test_what_is_destructive_wants_a_word(server: RunningServer, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    answer = ask(server, "rm", "-f", str(victim))
    id = shown(server, answer)["id"]
    refused = wsh("approvals", "approve", id, input="yes\n")
    assert refused.returncode != 0 and victim.exists() and "'run'" in refused.stderr
    body = {"digest": shown(server, answer)["digest"], "decision": "approve"}
    assert server.request("POST", f"/approvals/{id}", body).json["error"]["code"] == "confirmation_needed"
    assert wsh("approvals", "approve", id, input="run\n").returncode == 0
    assert read_end(server, answer)["result"]["authorization"] == "allowed_with_warning"
    assert not victim.exists()


def test_declining_tells_the_agent_why(server: RunningServer) -> None:
    answer = ask(server, "true", "declined")
    assert wsh("approvals", "decline", "--reason", "not today", shown(server, answer)["id"]).returncode == 0
    end = read(server, answer)
    assert end["error"]["code"] == "PM_TERM_DECLINED" and "not today" in end["error"]["message"]


def test_other_words_and_a_session_and_a_rule(server: RunningServer, places: Places) -> None:
    answer = ask(server, "echo", "asked")
    assert wsh("approvals", "approve", "--edit", "echo instead", shown(server, answer)["id"]).returncode == 0
    end = read_end(server, answer)
    assert end["result"]["edited_argv"] == ["echo", "instead"] and "instead" in end["result"]["stdout"]

    answer = ask(server, "basename", "/a/b")
    assert wsh("approvals", "approve", "--session", shown(server, answer)["id"]).returncode == 0
    again = server.request(
        "POST", "/terminal", execute("basename", "/a/b", timeout_ms=60_000), headers={"wsh-role": "agent"}, timeout=60
    )
    assert again.json["result"]["approval_scope"] == "session"

    answer = ask(server, "make", "--version")
    card = shown(server, answer)["evidence"]
    assert card["always"]["rule"] == "make --version"
    assert any("install" in each["says"] for each in card["always"]["wider"])
    assert wsh("approvals", "approve", "--always", shown(server, answer)["id"]).returncode == 0
    written = places.policy_file.read_text()
    assert 'command = "make --version"' in written and "exact = true" in written and "headless" not in written
    same = execute("make", "--version", timeout_ms=60_000)
    assert (
        server.request("POST", "/terminal", same, headers={"wsh-role": "agent"}, timeout=60).json["result"][
            "approval_scope"
        ]
        == "rule"
    )
    ask(server, "make", "-n")


def test_always_for_a_relative_path_holds_in_the_folder_that_was_shown(
    server: RunningServer, places: Places, tmp_path: Path
) -> None:
    meant = tmp_path / "meant"
    for folder in (meant, meant / "below", tmp_path / "other"):
        folder.mkdir()
        (folder / "build.sh").write_text("#!/bin/sh\npwd\n")
        (folder / "build.sh").chmod(0o755)
    answer = ask(server, "./build.sh", cwd=str(meant))
    card = shown(server, answer)
    assert "this folder alone" in card["evidence"]["always"]["says"]
    assert wsh("approvals", "approve", "--always", card["id"]).returncode == 0
    assert f'cwd = "{meant}"' in places.policy_file.read_text()
    same = execute("./build.sh", timeout_ms=60_000, cwd=str(meant))
    ran = server.request("POST", "/terminal", same, headers={"wsh-role": "agent"}, timeout=60).json
    assert ran["result"]["approval_scope"] == "rule", ran
    for folder in (meant / "below", tmp_path / "other"):
        ask(server, "./build.sh", cwd=str(folder))


def test_an_always_whose_rule_cannot_be_written_says_so_and_counts_once(server: RunningServer, places: Places) -> None:
    before = places.policy_file.read_bytes() if places.policy_file.exists() else b""
    lock = places.policy_file.parent / ".policy.toml.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    try:
        answer = ask(server, "echo", "once", "alone")
        told = wsh("approvals", "approve", "--always", shown(server, answer)["id"])
    finally:
        lock.rmdir()
    assert told.returncode != 0 and "the rule was not written: Is a directory" in told.stderr, told
    assert "once alone" in read_end(server, answer)["result"]["stdout"]
    assert (places.policy_file.read_bytes() if places.policy_file.exists() else b"") == before

    places.policy_file.write_bytes(before + b"\n[half")
    try:
        answer = ask(server, "echo", "never", "always")
        card = shown(server, answer)
        assert card["evidence"]["scopes"] == ["once", "session"]
        told = wsh("approvals", "approve", "--always", card["id"])
        assert told.returncode != 0 and "approve it once" in told.stderr
        assert wsh("approvals", "approve", card["id"]).returncode == 0
        assert "never always" in read_end(server, answer)["result"]["stdout"]
    finally:
        places.policy_file.write_bytes(before)


def test_where_no_window_is_none_is_launched_and_off_means_unavailable(server: RunningServer, places: Places) -> None:
    answer = ask(server, "true", "stays")
    assert wsh("approvals", "off").returncode == 0
    try:
        refused = server.request(
            "POST",
            "/terminal",
            execute("true", adapter_override="local", timeout_ms=20_000),
            headers={"wsh-role": "agent"},
            timeout=120,
        ).json
        assert refused["error"]["code"] in {"PM_TERM_GUI_UNAVAILABLE", "PM_TERM_TIMEOUT"}, refused
        body = {"digest": shown(server, answer)["digest"], "decision": "approve"}
        assert server.request("POST", f"/approvals/{answer['result']['approval_id']}", body).status == 403
    finally:
        assert wsh("approvals", "on").returncode == 0
    body = {"action": "terminate", "target": answer["identity"]}
    ended = server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60).json
    assert ended["result"]["approval"] == "withdrawn"
    assert shown(server, answer)["state"] == "withdrawn"


def test_an_agent_is_refused_on_every_answering_path(server: RunningServer, places: Places, tmp_path: Path) -> None:
    target = tmp_path / "made"
    answer = ask(server, "touch", str(target))
    one = shown(server, answer)
    path = f"/approvals/{one['id']}"
    body = {"digest": one["digest"], "decision": "approve"}
    token = wsh("token", "--agent", "mallory").stdout.split()[-1]

    def over_tcp(method: str, where: str, given: object, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request(method, where, json.dumps(given), {"Content-Type": "application/json", **headers})
        status = connection.getresponse().status
        connection.close()
        return status

    bearer = {"Authorization": f"Bearer {token}"}
    for method, where, given in (
        ("POST", path, body),
        ("GET", path, None),
        ("GET", "/approvals", None),
        ("PUT", "/approvals/mode", {"server": True}),
        ("POST", "/auth/link", None),
    ):
        assert over_tcp(method, where, given, bearer) == 403, where
        assert over_tcp(method, where, given, {"Authorization": "Bearer wrong"}) in (401, 403), where
        assert over_tcp(method, where, given, {"Cookie": f"wsh={token}"}) in (401, 403), where
        assert server.request(method, where, given, headers={"wsh-role": "agent"}).status == 403, where

    # From inside a session: the socket, the command line, the config.
    made: Reply = server.request("POST", "/sessions", {"name": "inside"})
    assert made.status == 201
    for words in (
        f"approvals approve {one['id']}",
        f"approvals decline {one['id']}",
        "approvals list",
        "approvals on",
        "approvals off",
    ):
        run = f"{sys.executable} -m wsh.cli.main {words}"
        done = server.request("POST", "/sessions/inside/run", {"input": run, "max_wait_ms": 60_000}, timeout=90).json
        assert done["exit_code"] not in (0, None), (words, done)
    server.request("DELETE", "/sessions/inside")
    assert shown(server, answer)["state"] == "waiting" and not target.exists()
    assert "server = true" in places.config_file.read_text()
    assert wsh("approvals", "decline", one["id"]).returncode == 0


def test_answers_from_all_sides_at_once_and_exactly_one_counts(server: RunningServer, tmp_path: Path) -> None:
    log = tmp_path / "runs"
    for number in range(5):
        answer = ask(server, "sh", "-c", f"echo {number} >> {log}")
        one = shown(server, answer)
        path = f"/approvals/{one['id']}"
        states: list[int] = []

        def give(decision: str, path: str = path, one: dict[str, Any] = one, states: list[int] = states) -> None:
            states.append(server.request("POST", path, {"digest": one["digest"], "decision": decision}).status)

        def withdraw(answer: dict[str, Any] = answer) -> None:
            body = {"action": "terminate", "target": answer["identity"]}
            server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60)

        threads = [threading.Thread(target=give, args=(word,)) for word in ("approve", "decline", "approve")]
        threads.append(threading.Thread(target=withdraw))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        state = shown(server, answer)["state"]
        assert state in {"approved", "declined", "withdrawn"}
        assert sum(status == 200 for status in states) == (state != "withdrawn")
        ran = log.read_text().split().count(str(number)) if log.exists() else 0
        assert ran <= (state == "approved")


def test_one_record_per_decision_says_who_where_and_what(server: RunningServer, places: Places) -> None:
    answer = ask(server, "echo", "for the record")
    assert wsh("approvals", "approve", shown(server, answer)["id"]).returncode == 0
    read_end(server, answer)
    trace = answer["correlation"]["trace_id"]
    printed = wsh("policy", "audit", "--trace", trace, "--json").stdout
    entries = [json.loads(line) for line in printed.splitlines()]
    (record,) = [entry for entry in entries if entry["kind"] == "approval"]
    assert (record["outcome"], record["where"], record["place"]) == ("approved", "shell", "server")
    assert record["by"].startswith("owner") and record["argv"] == ["echo", "'for the record'"]
    assert record["executable"].endswith("echo")
    assert "approved" in wsh("policy", "audit", "--trace", trace).stdout
    running = ask(server, "sleep", "1000")
    assert wsh("approvals", "approve", shown(server, running)["id"]).returncode == 0
    wait_until(lambda: read(server, running, 1)["result"]["running"], "it to run")
    body = {"action": "terminate", "target": running["identity"]}
    server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60)
    words = ["policy", "audit", "--trace", running["correlation"]["trace_id"]]
    entries = [json.loads(line) for line in wsh(*words, "--json").stdout.splitlines()]
    assert [entry["terminated"] for entry in entries if entry["kind"] == "result"] == [True]
    assert "terminated" in wsh(*words).stdout


def test_a_terminal_can_be_opened_and_typed_into_with_an_approval_each(server: RunningServer) -> None:
    opened = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "open_only"},
        "runtime": {"timeout_ms": 100},
    }
    answer = server.request("POST", "/terminal", opened, headers={"wsh-role": "agent"}, timeout=60).json
    assert wsh("approvals", "approve", shown(server, answer)["id"]).returncode == 0
    wait_until(lambda: read(server, answer, 1)["result"]["approval"] == "approved", "the terminal")
    line = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "echo typed-$((40+2))"},
        "target": {"terminal_id": answer["identity"]["terminal_id"]},
        "runtime": {"timeout_ms": 100},
    }
    typed = server.request("POST", "/terminal", line, headers={"wsh-role": "agent"}, timeout=60).json
    assert typed["result"]["approval"] == "pending"
    assert wsh("approvals", "approve", shown(server, typed)["id"]).returncode == 0
    wait_until(
        lambda: "typed-42" in read(server, answer, 1)["result"]["stdout"],
        "what was typed",
        seen=lambda: (read(server, answer, 1), shown(server, typed)),
    )
    body = {"action": "terminate", "target": answer["identity"]}
    assert server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60).json["success"]


def test_watch_tells_of_requests_as_they_come_and_end(server: RunningServer) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "wsh.cli.main", "approvals", "watch", "--json"], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        answer = ask(server, "true", "watched")
        try:
            seen: list[str] = []
            for line in watching.stdout:
                one = json.loads(line)
                if one["id"] != answer["result"]["approval_id"]:
                    continue
                seen.append(one["state"])
                if one["state"] == "waiting":
                    assert wsh("approvals", "approve", one["id"]).returncode == 0
                elif not one["run"]["running"]:
                    break
            assert seen[0] == "waiting" and seen[-1] == "approved"
        finally:
            watching.terminate()


def test_a_client_that_ends_takes_its_request_with_it(server: RunningServer) -> None:
    with StdioHost() as client:
        client.initialize()
        gone = client.call(TOOL, execute("true", "gone"))["result"]["structuredContent"]
        kept = client.call(TOOL, execute("true", "kept", keep_pending=True))["result"]["structuredContent"]
        shown(server, gone)
    wait_until(lambda: shown(server, gone)["state"] == "withdrawn", "the withdrawal")
    assert shown(server, kept)["state"] == "waiting"
    assert wsh("approvals", "decline", shown(server, kept)["id"]).returncode == 0


def test_the_lean_ask_leaves_nothing_behind_that_it_could_not_follow(server: RunningServer) -> None:
    with StdioHost(args=("--toolsets", "lean")) as client:
        client.initialize()
        result = client.call("ask", {"command": "true lean", "timeout_ms": 100})["result"]
        assert result["isError"] and "Nobody answered in time" in json.dumps(result)
    found = [one for one in server.get("/approvals")["requests"] if "lean" in one["command"]]
    assert [one["state"] for one in found] == ["withdrawn"]
