"""`wsh policy` as people and scripts use it: real processes, a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.waiting import HANG_S
from tests.support.warm import run_warm
from wsh.policy import Effect, Mode, PolicyRequest, RuleEffect, decide
from wsh.policy.audit import Audit
from wsh.policy.file.edit import NewRule, add_rule, locked, write_policy
from wsh.policy.file.store import PolicyStore
from wsh.wire.system.owner import MARK_BASE
from wsh.wire.system.place import Places

WSH = [sys.executable, "-m", "wsh.cli.main", "policy"]


def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run_warm([*WSH, *words], input=stdin, text=True)


def type_into(
    words: list[str],
    typed: str,
    prepare: Callable[[], None] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[int, str]:
    """Run `wsh policy WORDS` on a terminal of its own and type once it asks; `meanwhile` is done while it waits."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [*WSH, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        close_fds=True,
        preexec_fn=prepare,
        start_new_session=True,
    )
    os.close(slave)
    seen, sent, deadline = "", False, time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            ready, _, _ = select.select([master], [], [], 0.2)
            if ready:
                try:
                    data = os.read(master, 65536)
                except OSError:
                    break
                if not data:
                    break
                seen += data.decode()
            if not sent and "confirm" in seen:
                meanwhile()
                os.write(master, typed.encode() + b"\n")
                sent = True
        return child.wait(HANG_S), seen
    finally:
        os.close(master)


def test_explain_answers_each_json_line_with_a_verdict(tmp_path: Path, places: Places) -> None:
    file = tmp_path / "p.toml"
    file.write_text('[headless]\nallow = ["ls"]\n')
    lines = [
        '{"command": "ls -la"}',
        '{"argv": ["ls", "a b"]}',
        '{"command": "ls; rm x", "kind": "extra keys do no harm"}',
        '{"command": "make", "mode": "interactive"}',
        "not json",
        "[]",
        "{}",
        '{"command": "ls\\ud800"}',
        '{"command": "ls", "cwd": "/does/not/exist"}',
        '{"command": "ls", "env": {"PATH": "."}}',
    ]
    done = run("explain", "--policy", str(file), "-", stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(a["effect"], a["reason"]) for a in answers] == [
        ("allow", "allowed"),
        ("allow", "allowed"),
        ("deny", "destructive"),
        ("ask", "not_allowlisted"),
        ("deny", "parse_error"),
        ("deny", "parse_error"),
        ("deny", "parse_error"),
        ("deny", "parse_error"),
        ("deny", "cwd_outside_roots"),
        ("deny", "env_not_allowed"),
    ]
    assert answers[0]["argv"] == [["ls", "-la"]] and answers[1]["argv"] == [["ls", "a b"]]
    assert all({"effect", "risk", "reason", "rule", "argv"} <= set(answer) for answer in answers)


def test_explain_survives_bytes_that_are_not_text(places: Places) -> None:
    done = run_warm([*WSH, "explain", "-"], input=b'{"command": "\xff\xfe"}\n\n')
    assert done.returncode == 0 and json.loads(done.stdout)["reason"] == "parse_error"


def test_explain_tells_a_person_why(places: Places) -> None:
    told = run("explain", "--", "git", "-c", "core.pager=id", "log").stdout
    assert told.startswith("deny") and "not_allowlisted" in told
    told = run("explain", "--mode", "interactive", "--", "git status; rm -rf build").stdout
    assert told.startswith("ask") and "removes files" in told and '["rm", "-rf", "build"]' in told
    assert json.loads(run("explain", "--json", "--", "ls").stdout)["effect"] == "allow"


def test_show_and_test_say_what_is_wrong_and_where(places: Places) -> None:
    assert "shipped defaults hold" in run("show").stdout
    places.policy_file.parent.mkdir(parents=True, exist_ok=True)
    places.policy_file.write_text('[headless]\nallow = ["ls",\n  "cat |"]\n')
    shown = run("show")
    assert f"{places.policy_file}:3" in shown.stderr and "cannot be used" in shown.stderr
    assert f"{places.policy_file}:3" in json.loads(run("show", "--json").stdout)["warning"]
    tested = run("test")
    assert tested.returncode == 1 and f"{places.policy_file}:3" in tested.stderr
    places.policy_file.write_text('[headless]\nallow = ["ls"]\n[examples]\nmatch = ["ls -l"]\n')
    assert run("test").returncode == 0 and run("test", "/does/not/exist").returncode == 2


def test_a_person_at_a_terminal_allows_and_revokes(places: Places) -> None:
    status, seen = type_into(["allow", "--mode", "both", "--comment", "builds", "--", "make", "test", "*"], "allow")
    assert status == 0, seen
    assert 'command = "make test *"' in seen and 'comment = "builds"' in seen
    store = PolicyStore(places.policy_file)
    for mode in Mode:
        assert decide(PolicyRequest(command="make test -j2", mode=mode), store.current()).allowed
    assert decide(PolicyRequest(command="git status"), store.current()).allowed, "the shipped defaults still hold"
    status, seen = type_into(["revoke", "make", "test", "*"], "revoke")
    assert status == 0, seen
    assert decide(PolicyRequest(command="make test -j2"), store.current()).effect is Effect.DENY
    status, _ = type_into(["revoke", "git", "status"], "revoke")
    assert status == 0 and not decide(PolicyRequest(command="git status"), store.current()).allowed
    kinds = [entry["kind"] for entry in Audit(places.audit_log).read()]
    assert kinds == ["policy_allow", "policy_revoke", "policy_revoke"]


@pytest.mark.parametrize("words", [["allow", "make"], ["revoke", "npm"], ["init", "--preset", "make", "--write"]])
def test_others_change_the_file_while_a_person_is_asked_and_both_changes_stay(
    places: Places, tmp_path: Path, words: list[str]
) -> None:
    places.policy_file.parent.mkdir(parents=True, exist_ok=True)
    places.policy_file.write_text('[interactive]\nallow = ["npm"]\n')
    (tmp_path / "Makefile").write_text("test:\n")

    def write() -> None:
        lock = os.open(places.policy_file.parent / ".policy.toml.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(lock)
        with locked(places.policy_file) as text:
            write_policy(places.policy_file, add_rule(text, NewRule("git push", RuleEffect.DENY)))

    given = [*words, str(tmp_path)] if words[0] == "init" else words
    status, seen = type_into(given, words[0], meanwhile=write)
    assert status == 0, seen
    labels = {rule.label for rule in PolicyStore(places.policy_file).current().rules}
    assert "deny git push" in labels and ("allow npm" in labels) is (words[0] != "revoke")
    assert bool({"allow make", "allow make test"} & labels) is (words[0] != "revoke")


@pytest.mark.parametrize("typed", ["", "yes", "y", "ALLOW"])
def test_without_the_exact_word_nothing_changes(places: Places, typed: str) -> None:
    status, _ = type_into(["allow", "make"], typed)
    assert status == 5 and not places.policy_file.exists()


def test_a_pipe_cannot_allow(places: Places) -> None:
    done = run("allow", "make", stdin="allow\n")
    assert done.returncode == 5 and "person" in done.stderr and not places.policy_file.exists()


@pytest.mark.parametrize("limit", [MARK_BASE + 12345, 10_000_000])
def test_what_runs_inside_wsh_cannot_allow_even_on_a_terminal(places: Places, limit: int) -> None:
    def mark() -> None:
        resource.setrlimit(resource.RLIMIT_RTTIME, (limit, limit))

    status, seen = type_into(["allow", "make"], "allow", mark)
    assert status == 5 and "inside wsh" in seen and not places.policy_file.exists()


@pytest.mark.parametrize("text", [b"[headless\n", b'[headless]\nallow = ["\xff"]\n'])
def test_a_broken_file_is_not_changed(places: Places, text: bytes) -> None:
    places.policy_file.parent.mkdir(parents=True, exist_ok=True)
    places.policy_file.write_bytes(text)
    status, seen = type_into(["allow", "make"], "allow")
    assert status == 1 and "corrected first" in seen and places.policy_file.read_bytes() == text


def test_audit_shows_and_verifies(places: Places) -> None:
    trail = Audit(places.audit_log)
    for number in range(3):
        trail.append({"kind": "decision", "trace_id": f"t{number}", "argv": ["ls", "\x1b[31m"], "effect": "deny"})
    shown = run("audit").stdout
    assert len(shown.splitlines()) == 3 and "\x1b" not in shown
    assert [json.loads(line)["trace_id"] for line in run("audit", "--trace", "t1", "--json").stdout.splitlines()] == [
        "t1"
    ]
    assert run("audit", "--verify").returncode == 0
    places.audit_log.write_text(places.audit_log.read_text().replace("t1", "t9"))
    broken = run("audit", "--verify")
    assert broken.returncode == 1 and "audit.jsonl:2" in broken.stderr
    assert json.loads(run("audit", "--verify", "--json").stdout)["intact"] is False


def test_explain_says_that_our_own_files_are_not_for_headless_commands(places: Places, tmp_path: Path) -> None:
    for folder in (places.config, places.runtime, places.state):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    places.tokens.write_text("{}")
    (tmp_path / "harmless").symlink_to(places.tokens)
    questions = [
        {"argv": ["cat", str(places.tokens)]},
        {"argv": ["cat", "harmless"], "cwd": str(tmp_path)},
        {"argv": ["grep", "-r", "owner", str(places.config.parent)]},
        {"argv": ["cat", str(places.keeper_secret)]},
        {"argv": ["cat", "/etc/hostname"]},
        {"argv": ["cat", str(places.tokens)], "mode": "interactive"},
    ]
    done = run("explain", "-", stdin="".join(json.dumps(question) + "\n" for question in questions))
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["reason"] for answer in told[:4]] == ["own_files"] * 4, told
    assert all(answer["effect"] == "deny" and "wsh's own files" in answer["message"] for answer in told[:4])
    assert told[4]["reason"] == "allowed" and told[5]["reason"] != "own_files"


def test_init_offers_a_sandbox_for_agents_and_writes_it_when_it_is_named(tmp_path: Path, places: Places) -> None:
    shown = json.loads(run("init", "--json", str(tmp_path)).stdout)
    offer = shown["sandbox"]
    assert (offer["agents"], offer["offered"], shown["written"]) == ("off", "workspace", False)
    assert (offer["backend"] is None) == (offer["missing"] is not None)
    assert "sandbox workspace" in run("init", str(tmp_path)).stdout
    assert not places.policy_file.exists()
    unknown = run("init", "--sandbox", "nonsense", str(tmp_path))
    assert unknown.returncode != 0 and "workspace+network" in unknown.stderr
    refused = run("init", "--sandbox", "read-only", "--write", str(tmp_path))
    assert refused.returncode != 0 and not places.policy_file.exists(), "a person at a terminal decides"
    words = ["init", "--sandbox", "read-only", "--write", str(tmp_path)]
    status, seen = type_into(words, "no")
    assert status != 0 and not places.policy_file.exists(), seen
    status, seen = type_into(words, "init")
    assert status == 0 and "Agents will get the sandbox read-only" in seen, seen
    agents = PolicyStore(places.policy_file).current().sandbox.agents
    assert agents is not None and agents.name == "read-only"
    now = json.loads(run("init", "--json", "--sandbox", "off", str(tmp_path)).stdout)["sandbox"]
    assert (now["agents"], now["offered"]) == ("read-only", "off")
    status, seen = type_into(["init", "--preset", "python", "--sandbox", "off", "--write", str(tmp_path)], "init")
    assert status == 0, seen
    policy = PolicyStore(places.policy_file).current()
    assert policy.sandbox.agents is None and any("pytest" in rule.pattern for rule in policy.rules)
    assert "sandbox.agents = off" in places.audit_log.read_text()
