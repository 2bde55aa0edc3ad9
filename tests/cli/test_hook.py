"""`wsh hook` as Claude Code and Codex run it: rules answer, a card asks the rest, and nothing that is broken allows or blocks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.policy.home import home_with_policy
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places, find_places

WSH = [sys.executable, "-m", "wsh.cli.main"]
PATIENT = ("--server-s", "60")
"""A server on a busy machine may take its time; only the test of one that hangs is in a hurry."""
CORPUS = Path(__file__).parents[1] / "policy" / "corpus.jsonl"
POLICY = """[headless]
allow = ["ls", "cat", "echo", "git status", "git log", "git diff", "grep", "rg", "find", "sort"]
[[rule]]
effect = "deny"
command = "curl *"
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    with home_with_policy(tmp_path_factory.mktemp("hook"), POLICY) as found:
        yield found


@pytest.fixture(scope="module")
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places, environ={"WSH_APPROVALS_SERVER": "true"}, check_left=False) as running:
        yield running


def payload(command: object, event: str = "PermissionRequest", **more: object) -> bytes:
    """As both hosts send it."""
    given = {
        "session_id": "s1",
        "transcript_path": None,
        "cwd": "/tmp",
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "it helps"},
    }
    return json.dumps({**given, **more}).encode()


def hook(data: bytes, *words: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, **environ}
    return run_warm([*WSH, "hook", *PATIENT, *words], input=data, timeout=120, env=env)


def said(done: subprocess.CompletedProcess[bytes]) -> Any:
    """What the host is told; None for nothing."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else None


def waiting(server: RunningServer) -> list[dict[str, Any]]:
    return [one for one in server.get("/approvals")["requests"] if one["state"] == "waiting" and one["digest"]]


def start(command: str, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([*WSH, "hook", *PATIENT, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(payload(command))
    process.stdin.close()
    return process


def card(server: RunningServer, command: str) -> dict[str, Any]:
    """The card of a command, once it is shown."""
    found = wait_until(lambda: [one for one in waiting(server) if command in one["command"]], f"a card of {command}")
    return found[0]


def finish(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    with process.stdout:
        data = process.stdout.read()
    assert process.wait(60) == 0
    return json.loads(data)["hookSpecificOutput"] if data else None


def answer(server: RunningServer, one: dict[str, Any], **body: Any) -> dict[str, Any]:
    reply = server.request("POST", f"/approvals/{one['id']}", {"digest": one["digest"], **body})
    assert reply.status == 200, reply.json
    found: dict[str, Any] = reply.json
    return found


def test_rules_answer_both_events_of_both_hosts(server: RunningServer) -> None:
    allow = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    for client in ("claude-code", "codex"):
        assert said(hook(payload("ls -la"), "--client", client)) == allow
        denied = said(hook(payload("curl http://example.org"), "--client", client))
        assert denied["decision"]["behavior"] == "deny" and denied["decision"]["message"]
        before = said(hook(payload("rm -rf /", "PreToolUse"), "--client", client))
        assert before["permissionDecision"] == "deny" and before["permissionDecisionReason"]
    assert said(hook(payload("ls", "PreToolUse")))["permissionDecision"] == "allow"
    assert said(hook(payload("ls", "PreToolUse"), "--client", "codex")) is None
    assert said(hook(payload("touch x", "PreToolUse"), "--rules-only")) is None
    assert waiting(server) == []


def test_the_hook_agrees_with_policy_explain_on_the_corpus(server: RunningServer, tmp_path: Path) -> None:
    cwd = str(tmp_path)  # a folder without files of wsh's own
    commands = [json.loads(line) for line in CORPUS.read_text().splitlines() if line.strip()]
    lines = "".join(json.dumps({"command": one["command"]}) + "\n" for one in commands)
    verdicts = {}
    for mode in ("headless", "interactive"):
        words = [*WSH, "policy", "explain", "--mode", mode, "--cwd", cwd, "--", "-"]
        done = subprocess.run(words, input=lines, capture_output=True, text=True, timeout=120, check=True)
        verdicts[mode] = [json.loads(line) for line in done.stdout.splitlines()]
    allowed = 0
    for one, alone, watched in zip(commands, verdicts["headless"], verdicts["interactive"], strict=True):
        if not one["command"]:
            continue
        body = {"client": "codex", "command": one["command"], "cwd": cwd}
        told = server.request("POST", "/hook", body).json["decision"]
        if alone["effect"] == "allow" or watched["effect"] == "allow":
            wanted = "allow"
        else:
            wanted = "deny" if watched["effect"] == "deny" or watched["risk"] == "irrecoverable" else "ask"
        assert told == wanted, (one, alone, watched)
        if one.get("expect") in ("allow", "deny"):
            assert (told == "allow") is (one["expect"] == "allow"), one
        allowed += told == "allow"
    assert allowed > 5


def test_a_card_asks_what_no_rule_covers(server: RunningServer) -> None:
    process = start("touch /tmp/yes-hook")
    one = card(server, "yes-hook")
    assert one["kind"] == "hook" and one["place"] == "host" and one["note"] == "it helps"
    assert [press["name"] for press in one["evidence"]["presses"]] == ["once", "decline"]
    assert "claude-code" in one["asker"]
    assert [entry["request_id"] for entry in server.get("/inbox")["items"] if entry["kind"] == "request"] == [one["id"]]
    assert answer(server, one, decision="approve")["state"] == "approved"
    assert finish(process) == {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    assert server.get(f"/approvals/{one['id']}")["run"] is None, "the host runs it, not wsh"
    assert not Path("/tmp/yes-hook").exists()


def test_a_declined_card_denies_with_its_reason(server: RunningServer) -> None:
    process = start("touch /tmp/no-hook", "--client", "codex")
    answer(server, card(server, "no-hook"), decision="decline", reason="not today")
    told = finish(process)
    assert told["decision"]["behavior"] == "deny" and "not today" in told["decision"]["message"]


def test_a_deadline_gives_the_question_back_and_takes_the_card_away(server: RunningServer) -> None:
    process = start("touch /tmp/late-hook", "--wait-s", "1")
    assert finish(process) is None
    one = next(one for one in server.get("/approvals")["requests"] if "late-hook" in one["command"])
    assert one["state"] == "expired"
    reply = server.request("POST", f"/approvals/{one['id']}", {"digest": one["digest"] or "x", "decision": "approve"})
    assert reply.code == "approval_settled"


def test_a_hook_that_was_killed_takes_its_card_along(server: RunningServer) -> None:
    process = start("touch /tmp/killed-hook")
    one = card(server, "killed-hook")
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    wait_until(lambda: server.get(f"/approvals/{one['id']}")["state"] == "withdrawn", "the card to go")


def test_what_destroys_must_be_held(server: RunningServer) -> None:
    process = start("rm -r /tmp/held-hook")
    one = card(server, "held-hook")
    refused = server.request("POST", f"/approvals/{one['id']}", {"digest": one["digest"], "decision": "approve"})
    assert refused.code == "confirmation_needed"
    answer(server, one, decision="approve", confirm=True)
    told = finish(process)
    assert told["decision"] == {"behavior": "allow"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"hook_event_name": "Stop"}',
        payload("ls", tool_name="Write"),
        payload("ls", hook_event_name="PostToolUse"),
        payload(7),
        payload("   "),
        payload("ls", tool_input="ls"),
        payload("curl x", tool_input={"command": "ls", "description": "network-access example.org"}),
        payload("x" * 200_000),
        payload("ls", cwd="/no/such/folder"),
        b"\xff\xfe" * 100,
    ],
    ids=range(14),
)
def test_what_is_no_question_about_a_command_is_left_to_the_host(server: RunningServer, data: bytes) -> None:
    assert said(hook(data, "--wait-s", "1")) is None


def test_without_a_server_the_host_decides(tmp_path: Path) -> None:
    done = hook(payload("ls"), XDG_RUNTIME_DIR=str(tmp_path), WSH_SERVER="nobody")
    assert said(done) is None and b"the host asks by itself" in done.stderr
    assert list(tmp_path.rglob("*.sock")) == [], "no server is started"


def test_a_server_that_hangs_neither_blocks_nor_allows(places: Places) -> None:
    with running_server(find_places(server="hanging"), check_left=False) as hanging:
        os.kill(hanging.process.pid, signal.SIGSTOP)
        try:
            assert said(hook(payload("ls"), "--server-s", "1", WSH_SERVER="hanging")) is None
        finally:
            os.kill(hanging.process.pid, signal.SIGCONT)


def test_words_that_the_hook_does_not_know_do_not_block_the_host(server: RunningServer) -> None:
    assert hook(payload("ls"), "--bogus").returncode == 1
    assert hook(payload("ls"), "--client", "nobody").returncode == 1


def test_where_approvals_are_off_the_host_asks_at_once(places: Places) -> None:
    with running_server(find_places(server="off"), check_left=False):
        assert said(hook(payload("touch x"), WSH_SERVER="off")) is None


def test_install_shows_writes_merges_and_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    def install(*words: str) -> dict[str, Any]:
        done = run_warm([*WSH, "hook", "install", "--json", *words], text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    file = tmp_path / ".claude" / "settings.json"
    assert not install("--client", "claude-code")["written"] and not file.exists()
    file.parent.mkdir()
    other = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}
    file.write_text(json.dumps({"theme": "dark", "hooks": {"PreToolUse": [other], "Stop": []}}))
    assert install("--client", "claude-code", "--write")["written"]
    written = json.loads(file.read_text())
    assert written["theme"] == "dark" and written["hooks"]["Stop"] == [] and written["hooks"]["PreToolUse"][0] == other
    assert [len(written["hooks"][event]) for event in ("PreToolUse", "PermissionRequest")] == [2, 1]
    assert install("--client", "claude-code", "--write")["unchanged"]
    assert json.loads(file.read_text()) == written
    assert install("--client", "codex", "--write")["file"] == str(tmp_path / ".codex" / "hooks.json")
    ask = json.loads((tmp_path / ".codex" / "hooks.json").read_text())["hooks"]["PermissionRequest"][0]["hooks"][0]
    assert ask["timeout"] > 240 and "--client codex" in ask["command"]
    # The command works as it stands, from any folder.
    line = written["hooks"]["PermissionRequest"][0]["hooks"][0]["command"]
    done = subprocess.run(["sh", "-c", line], input=b"{}", capture_output=True, cwd="/", timeout=60, check=True)
    assert done.stdout == b""
    file.write_text("// comments\n{}")
    failed = subprocess.run(
        [*WSH, "hook", "install", "--client", "claude-code", "--write"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 1 and "by hand" in failed.stderr and file.read_text() == "// comments\n{}"


def _make_repository(folder: Path) -> str:
    folder.mkdir(parents=True)
    _git(folder, "init", "-q")
    (folder / "file").write_text("text\n")
    _git(folder, "add", "file")
    _git(folder, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "first")
    _git(folder, "remote", "add", "origin", "https://example.org/x.git")
    return str(folder)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def _judge(server: RunningServer, command: str, cwd: str) -> Any:
    """What the rules say of a command that a host would run; nobody is asked."""
    return server.request("POST", "/hook", {"client": "codex", "command": command, "cwd": cwd}).json


def test_git_is_allowed_in_an_ordinary_repository_with_settings_hooks_and_submodules(
    server: RunningServer, tmp_path: Path
) -> None:
    inner, outer = _make_repository(tmp_path / "inner"), _make_repository(tmp_path / "outer")
    _git(Path(outer), "-c", "protocol.file.allow=always", "submodule", "add", "-q", inner, "part")
    for key, value in (("core.fsmonitor", "true"), ("user.name", "n"), ("pull.rebase", "true"), ("gc.auto", "0")):
        _git(Path(outer), "config", key, value)
    hook_file = Path(outer, ".git/hooks/pre-commit")
    hook_file.write_text("#!/bin/sh\n")
    hook_file.chmod(0o755)
    for command in ("git status", "git log -1", "git diff"):
        assert _judge(server, command, outer)["decision"] == "allow", command


@pytest.mark.parametrize(
    "key", ["core.fsmonitor", "core.hooksPath", "core.pager", "filter.x.clean", "diff.x.textconv", "gpg.program"]
)
def test_git_is_asked_about_where_the_settings_of_the_repository_start_programs(
    server: RunningServer, tmp_path: Path, key: str
) -> None:
    repository = _make_repository(tmp_path / "r")
    assert _judge(server, "git status", repository)["decision"] == "allow"
    canary = tmp_path / "started"
    _git(Path(repository), "config", key, f"touch {canary} #")
    judged = _judge(server, "git status", repository)
    assert judged["decision"] == "ask" and key.lower() in judged["reason"].lower() and judged["rule"] is None
    assert _judge(server, "ls", repository)["decision"] == "allow"
    assert not canary.exists()


def test_git_is_asked_about_where_included_settings_a_hook_or_a_submodule_start_programs(
    server: RunningServer, tmp_path: Path
) -> None:
    included = _make_repository(tmp_path / "included")
    Path(included, "more").write_text("[core]\n\tfsmonitor = touch /tmp/x\n")
    _git(Path(included), "config", "include.path", "../more")

    hooked = _make_repository(tmp_path / "hooked")
    hook_file = Path(hooked, ".git/hooks/post-index-change")
    hook_file.write_text("#!/bin/sh\n")
    hook_file.chmod(0o755)

    inner, outer = _make_repository(tmp_path / "inner"), _make_repository(tmp_path / "outer")
    _git(Path(outer), "-c", "protocol.file.allow=always", "submodule", "add", "-q", inner, "part")
    _git(Path(outer, "part"), "config", "core.fsmonitor", "touch /tmp/x")

    bare = tmp_path / "work" / "tree"
    bare.mkdir(parents=True)
    _git(bare, "init", "-q", "--bare")
    for key, value in (("core.bare", "false"), ("core.worktree", str(bare)), ("core.fsmonitor", "touch /tmp/x")):
        _git(bare, "config", key, value)

    broken = _make_repository(tmp_path / "broken")
    Path(broken, ".git/config").write_text("[core\n")
    for folder in (included, hooked, outer, str(bare), broken):
        judged = _judge(server, "git status", folder)
        assert judged["decision"] == "ask" and judged["reason"], folder


def test_the_card_of_git_in_a_repository_that_starts_programs_says_what_was_found(
    server: RunningServer, tmp_path: Path
) -> None:
    repository = _make_repository(tmp_path / "r")
    _git(Path(repository), "config", "core.fsmonitor", "touch /tmp/x")
    words = [*WSH, "hook", *PATIENT]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(payload("git status", cwd=repository))
    process.stdin.close()
    one = card(server, "git status")
    assert any("core.fsmonitor" in reason for reason in one["reasons"]), one
    answer(server, one, decision="approve")
    assert finish(process)["decision"]["behavior"] == "allow"
