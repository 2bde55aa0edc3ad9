"""The corpus of commands: every verdict and every risk class right."""

from __future__ import annotations

import json
from pathlib import Path

from wsh.policy import Mode, Policy, PolicyRequest, decide
from wsh.policy.policy import allow_rules

CORPUS = [json.loads(line) for line in (Path(__file__).parent / "corpus.jsonl").read_text().splitlines()]
ALLOW = ["ls", "cat", "echo", "git status", "git log", "git diff", "grep", "rg", "find", "sort"]
POLICY = Policy(rules=allow_rules(ALLOW, Mode.HEADLESS))


def test_every_verdict_of_the_corpus_is_right() -> None:
    wrong = []
    for entry in CORPUS:
        verdict = decide(PolicyRequest(command=entry["command"]), POLICY)
        if "expect" in entry and ("allow" if verdict.allowed else "deny") != entry["expect"]:
            wrong.append((entry["command"], entry["expect"], verdict))
    assert not wrong


def test_every_risk_class_of_the_corpus_is_right() -> None:
    wrong = []
    for entry in CORPUS:
        risk = decide(PolicyRequest(command=entry["command"]), POLICY).risk
        if "expect_class" in entry and risk != entry["expect_class"]:
            wrong.append((entry["command"], entry["expect_class"], risk))
    assert not wrong


def test_what_runs_is_what_was_given_as_argv() -> None:
    for entry in CORPUS:
        if entry.get("expect") == "allow":
            parsed = decide(PolicyRequest(command=entry["command"]), POLICY)
            (argv,) = parsed.argv
            again = decide(PolicyRequest(argv=argv), POLICY)
            assert again.allowed and again.argv == (argv,), entry
