"""`--json` on every command: a walk over the whole command line, each command run once for a program."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import HANG_S, wait_until
from tests.support.warm import WarmPopen, run_warm
from wsh.cli.declare import CliCommand, json_option
from wsh.cli.main import NAMES, load_command
from wsh.wire.system.place import Places

WSH = [sys.executable, "-P", "-m", "wsh.cli.main"]
# `wsh mcp` speaks JSON-RPC and nothing else, `wsh hook` what hosts understand; the window prints nothing and takes its own arguments.
WITHOUT = {"mcp", "hook", "desktop", "relay"}
ELSEWHERE = {"server", "host add", "host remove", "host install", "host doctor"}
"""Those of hosts are used with a real sshd in `tests/host`."""
ELSEWHERE |= {f"fleet {word}" for word in ("up", "down", "invite", "remove", "join", "run")}
"""Used with a real NATS server there, too."""

Check = Callable[[Any], bool]
# In this order: each has a server with what the ones before left. A typed text means that a person must be at a terminal.
CASES: list[tuple[str, Sequence[str], Check]] = [
    ("new", ("--name", "work", "sh"), lambda v: v["name"] == "work" and v["pid"] > 0),
    ("list", (), lambda v: [s["name"] for s in v] == ["work"]),
    ("run", ("work", "echo $((6*7))"), lambda v: "42" in str(v["screen"]["lines"])),
    ("send", ("--enter", "work", "true"), lambda v: v == {"session": "work", "bytes": 5}),
    ("keys", ("work", "ctrl+c", "enter"), lambda v: v == {"session": "work", "keys": ["ctrl+c", "enter"]}),
    ("wait", ("--quiet-ms", "50", "work"), lambda v: v["ended_by"] == "quiet"),
    ("screen", ("work",), lambda v: (v["rows"], v["cols"]) == (24, 80)),
    ("scrollback", ("--limit", "2", "work"), lambda v: len(v["lines"]) <= 2 and v["total"] >= 1),
    ("resize", ("work", "30", "100"), lambda v: (v["rows"], v["cols"]) == (30, 100)),
    ("rename", ("work", "job"), lambda v: v["name"] == "job"),
    ("tag", ("--remove", "old", "job", "new", "a"), lambda v: v["tags"] == ["a", "new"]),
    ("detach", ("job",), lambda v: v == {"detached": "job"}),
    ("export", ("--format", "txt", "job"), lambda v: "42" in v["data"] and v["encoding"] == "utf8"),
    ("export", ("--format", "png", "job"), lambda v: v["encoding"] == "base64" and v["data"].startswith("iVBOR")),
    ("export", ("-o", "job.cast", "job"), lambda v: v["bytes"] == Path("job.cast").stat().st_size),
    ("play", ("--idle-limit", "0.1", "job.cast"), lambda v: v["moments"] and v["duration_s"] < 60),
    ("status", (), lambda v: v["running"] and v["url"] and v["pid"] and v["socket"] and v["sessions"] == 1),
    ("open", (), lambda v: v["opened"].startswith("http://127.0.0.1:")),
    ("link", (), lambda v: v["url"].startswith("http://") and v["warning"] is None),
    ("link", ("--qr",), lambda v: "--at" in v["warning"]),
    ("link", ("--at", "http://box.lan:8080"), lambda v: "Plain http" in v["warning"] and "/box.lan:8080/" in v["url"]),
    ("link", ("--at", "https://box.lan/wsh/"), lambda v: v["url"].startswith("https://box.lan/wsh/auth/open?code=")),
    ("notify", (), lambda v: v["usual"] and len(v["channels"]) == 5),
    ("notify add", ("--on", "told", "--to", "page"), lambda v: len(v["rules"]) == 4 and not v["usual"]),
    ("notify remove", ("4",), lambda v: len(v["rules"]) == 3),
    ("notify reset", (), lambda v: v["usual"]),
    ("notify test", ("--to", "page"), lambda v: v[0]["deliveries"][0]["state"] == "sent"),
    ("notify list", (), lambda v: v["notices"][-1]["text"] == "This is a test."),
    ("token", (), lambda v: v["role"] == "owner" and len(v["token"]) > 20),
    ("token", ("--agent", "ada"), lambda v: v["role"] == "agent"),
    ("token", ("--list",), lambda v: [a["name"] for a in v] == ["ada"]),
    ("token", ("--revoke", "ada"), lambda v: v == {"revoked": "ada"}),
    ("config", (), lambda v: v["server.bind"]["origin"]),
    ("doctor", (), lambda v: {f["state"] for f in v} <= {"ok", "note", "wrong"} and len(v) > 5),
    ("service install", ("--no-start",), lambda v: len(v["units"]) == 2 and not v["started"]),
    ("service status", (), lambda v: v["installed"] and not v["stale"]),
    ("service remove", (), lambda v: len(v["removed"]) == 2),
    ("uninstall", (), lambda v: v["found"] and not v["removed"]),
    ("shell-integration", ("zsh",), lambda v: v["shell"] == "zsh" and v["script"]),
    ("completion", ("bash",), lambda v: v["shell"] == "bash" and "_WSH_COMPLETE" in v["script"]),
    ("index build", (".",), lambda v: v["files"]["added"] >= 1),
    ("index status", (".",), lambda v: v["exists"] and v["files"] >= 1),
    ("index watch", (".",), lambda v: v["files"] >= 1 and v["builtAt"]),
    ("index export", ("index.tar.zst",), lambda v: v["bytes"] == Path("index.tar.zst").stat().st_size),
    ("index import", ("index.tar.zst",), lambda v: v["workspace"] == os.getcwd()),
    ("search", ("quokka",), lambda v: [h["path"] for h in v["hits"]] == ["note.md"]),
    ("approvals on", (), lambda v: v["server"] and v["running"]),
    ("approvals", (), lambda v: v["server"] and v["requests"] == []),
    ("approvals list", (), lambda v: [one["state"] for one in v["requests"]] == ["waiting", "waiting"]),
    ("approvals show", ("$1",), lambda v: v["evidence"]["argv"] == ["true", "first"]),
    ("approvals approve", ("$1",), lambda v: v["state"] == "approved" and v["run"]["session"]),
    ("approvals watch", (), lambda v: v["state"] == "waiting"),
    ("approvals decline", ("--reason", "no", "$2"), lambda v: (v["state"], v["reason"]) == ("declined", "no")),
    ("approvals off", (), lambda v: not v["server"]),
    ("inbox", (), lambda v: v["wants"] == 0 and [one["what"] for one in v["items"]] == ["true first"]),
    ("inbox snooze", ("--for", "2h", "exit."), lambda v: v["items"] == []),
    ("inbox restore", ("exit.",), lambda v: [one["kind"] for one in v["items"]] == ["finished"]),
    ("inbox done", ("exit.",), lambda v: v["items"] == []),
    ("wake", (), lambda v: v == {"wakes": []}),
    ("wake", ("--when", "job", "--line", "true", "job"), lambda v: v["state"] == "waiting" and v["session"] == "job"),
    ("host", (), lambda v: v == {"hosts": []}),
    ("host list", (), lambda v: v == {"hosts": []}),
    ("fleet", (), lambda v: v["nodes"] == [] and not v["joined"]),
    ("fleet list", (), lambda v: v["nodes"] == []),
    ("fleet leave", (), lambda v: v == {"left": True}),
    ("policy show", (), lambda v: isinstance(v, dict)),
    ("policy explain", ("--", "ls"), lambda v: v["effect"]),
    ("policy test", (), lambda v: v["usable"] and v["problems"] == []),
    ("policy allow", ("quokka", "*"), lambda v: v["allowed"] == "quokka *" and "quokka" in v["rule"]),
    (
        "policy init",
        ("--preset", "python"),
        lambda v: not v["written"] and v["rules"][0]["lets_in"] and v["sandbox"]["offered"] == "workspace",
    ),
    ("policy revoke", ("quokka", "*"), lambda v: v["revoked"] == "quokka *"),
    ("policy audit", (), lambda v: v["kind"] == "policy_revoke"),
    ("mcp install", ("--client", "cursor", "--scope", "project"), lambda v: "mcp" in v["entry"] and not v["written"]),
    ("mcp install", ("--client", "cursor", "--scope", "project", "--write"), lambda v: v["written"]),
    ("hook test", ("ls",), lambda v: v["decision"] == "allow" and v["output"]["hookSpecificOutput"]),
    ("hook install", ("--client", "codex", "--scope", "project"), lambda v: "wsh" in v["entry"] and not v["written"]),
    ("record", ("-o", "it.cast", "sh", "-c", "echo recorded; exit 3"), lambda v: v["exit_code"] == 3 and v["bytes"]),
    ("attach", ("job",), lambda v: v == {"session": "job", "reason": "detached", "exit_code": None}),
    ("kill", ("job",), lambda v: v == {"killed": ["job"]}),
    ("stop", ("--keep",), lambda v: v["stopped"] and v["kept"] and v["pid"]),
    ("stop", (), lambda v: v == {"stopped": True, "pid": None, "kept": False}),  # what the server left to its keeper
    ("stop", (), lambda v: v == {"stopped": False, "pid": None, "kept": False}),
    ("status", (), lambda v: not v["running"]),
]
TYPED = {"policy allow": "allow\n", "policy revoke": "revoke\n", "record": "", "attach": "\x1c\x1c"}
STATUS = {("record", 3), ("status", 6)}


def _leaves() -> Iterator[CliCommand]:
    for name in NAMES:
        command = load_command(name)
        yield from command.commands.values()
        if not command.commands or command.runs_alone:
            yield command


def test_every_command_takes_json_and_has_a_case() -> None:
    leaves = {command.path.removeprefix("wsh "): command for command in _leaves()}
    assert {name for name, command in leaves.items() if json_option not in command.options} == WITHOUT
    assert set(leaves) - WITHOUT == {name for name, _, _ in CASES} | ELSEWHERE


def _run(words: Sequence[str]) -> tuple[int, str]:
    if words[1] == "watch":
        with subprocess.Popen([*WSH, *words], stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            line = watching.stdout.readline()
            watching.terminate()
            watching.wait(HANG_S)
        return 0, line
    done = run_warm([*WSH, *words], text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout or done.stderr


def _run_on_a_terminal(words: Sequence[str], typed: str) -> tuple[int, str]:
    """stdin and stdout are a terminal, as these commands want it; the JSON is what ends the output."""
    master, slave = pty.openpty()
    process = subprocess.Popen([*WSH, *words], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    seen = bytearray()

    def read() -> None:
        while True:
            select.select([master], [], [], 30)
            try:
                seen.extend(os.read(master, 65536))
            except OSError:
                return

    reader = threading.Thread(target=read)
    reader.start()
    if words[0] == "attach":
        wait_until(lambda: b"job" in seen, what="the status line of the viewer")
    os.write(master, typed.encode())
    status = process.wait(60)
    reader.join(HANG_S)
    os.close(master)
    return status, seen.decode(errors="replace")


def _last_json(text: str) -> Any:
    """The JSON value that `text` ends with, after whatever a terminal showed."""
    for at, sign in enumerate(text):
        if sign in "[{":
            try:
                return json.loads(text[at:])
            except ValueError:
                continue
    raise AssertionError(f"no JSON in {text!r}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "note.md").write_text("# A quokka\n\nIt smiles.\n")
    monkeypatch.chdir(tree)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BROWSER", "true %s")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tree


@pytest.fixture
def server(places: Places, folder: Path) -> Iterator[RunningServer]:
    with running_server(places, check_left=False) as running:
        yield running


def _ask(server: RunningServer, word: str) -> str:
    """An agent's request that waits for a person; its id."""
    body = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "true", "args": [word]},
        "runtime": {"timeout_ms": 50},
    }
    answer = server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}).json
    id = str(answer["result"]["approval_id"])
    wait_until(lambda: server.get(f"/approvals/{id}")["digest"], "the card")
    return id


def test_every_command_answers_a_program_in_json(server: RunningServer) -> None:
    asked: dict[str, str] = {}
    for name, arguments, check in CASES:
        if name == "approvals list":
            asked = {f"${number}": _ask(server, word) for number, word in ((1, "first"), (2, "second"))}
        if name == "inbox":
            wait_until(lambda: server.get("/inbox")["items"], "the end of what was approved")
        words = [*name.split(), "--json", *(asked.get(word, word) for word in arguments)]
        status, said = _run_on_a_terminal(words, TYPED[name]) if name in TYPED else _run(words)
        assert status == 0 or (name, status) in STATUS, f"wsh {' '.join(words)}: {status}\n{said}"
        if name == "policy audit":  # a stream of entries: one value a line
            said = said.splitlines()[-1]
        value = _last_json(said) if name in TYPED else json.loads(said)
        assert check(value), f"wsh {' '.join(words)} said {said}"


def test_status_warns_of_a_policy_that_cannot_be_used(server: RunningServer) -> None:
    file = server.places.policy_file
    file.write_text('[headless]\nalow = ["ls"]\n')
    file.chmod(0o600)
    (warning,) = json.loads(_run(["status", "--json"])[1])["warnings"]
    assert f"{file}:2" in warning and "alow" in warning
    plain = subprocess.run([*WSH, "status"], capture_output=True, text=True, timeout=60)
    assert plain.returncode == 0 and f"warning: {warning}" in plain.stderr
    file.unlink()
    assert json.loads(_run(["status", "--json"])[1])["warnings"] == []


def test_a_server_says_in_json_where_it_is(places: Places) -> None:
    command = [*WSH, "server", "--json", "--bind", "127.0.0.1:0"]
    with WarmPopen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert told["pid"] == process.pid and told["url"].startswith("http://127.0.0.1:")
        assert told["socket"] == str(places.socket)
        assert json.loads(_run(["stop", "--json"])[1])["stopped"]
        assert process.wait(60) == 0


ERRORS = [
    (["screen", "--json", "nobody"], 3, "session_not_found"),
    (["rename", "--json", "nobody", "else"], 3, "session_not_found"),
    (["resize", "--json", "work", "many", "80"], 2, "invalid_request"),
    (["kill", "--json"], 2, "invalid_request"),
    (["nothing", "--json"], 2, "invalid_request"),
    (["screen", "--jsn", "--json", "work"], 2, "invalid_request"),
    (["policy", "revoke", "--json", "nothing"], 5, "forbidden"),
    (["attach", "--json", "work"], 2, "invalid_request"),
]


def test_an_error_is_json_on_stderr(server: RunningServer) -> None:
    for words, status, code in ERRORS:
        done = run_warm([*WSH, *words], text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (status, ""), words
        error = json.loads(done.stderr)["error"]
        assert error["code"] == code and error["message"]
