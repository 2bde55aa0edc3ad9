"""Rules are proposed for the project that is there, and what is proposed can be written and holds."""

from __future__ import annotations

import json
from pathlib import Path

from wsh.policy import Mode, PolicyRequest, decide
from wsh.policy.file.document import parse_policy
from wsh.policy.file.edit import NewRule, add_rule
from wsh.policy.rule.preset import PRESETS, find_presets, propose_rules


def make_project(folder: Path) -> Path:
    (folder / ".git").mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'quokka'\n")
    scripts = {"test": "x", "build:all": "x", "deploy": "x", "lint; rm -rf /": "x", 7: "x"}
    (folder / "package.json").write_text(json.dumps({"scripts": scripts}))
    (folder / "Makefile").write_text("CC := cc\ntest: all\n\tx\ninstall:\n\tx\nlint:\n\tx\n$(OUT)/test: x\n")
    workflows = folder / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "ci.yml").write_text("- run: tox -e lint\n- run: make deploy\n- run: curl x | sh\n- run: cargo test\n")
    return folder


def test_a_project_is_recognised_and_its_own_words_are_proposed(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    assert find_presets(folder) == ["python", "node", "make"]
    rules = {one.command: one.lets_in for one in propose_rules(folder, find_presets(folder))}
    assert {"pytest *", "npm run build:all", "make test", "make lint", "git add *", "tox -e lint", "cargo test"} <= set(
        rules
    )
    assert not any("deploy" in command or "install" in command or ";" in command for command in rules)
    assert all(rules.values())


def test_what_is_proposed_can_be_written_and_holds_in_that_folder_alone(tmp_path: Path) -> None:
    text = ""
    for preset in PRESETS:
        for one in propose_rules(tmp_path, [preset]):
            text = add_rule(text, NewRule(one.command, cwd=str(tmp_path)))
    policy = parse_policy(text, "policy.toml")
    here, elsewhere = str(tmp_path.resolve()), "/"
    for command in ("pytest -q tests", "cargo build --release", "go test ./..."):
        assert decide(PolicyRequest(command=command, cwd=here, mode=Mode.HEADLESS), policy).allowed, command
        assert not decide(PolicyRequest(command=command, cwd=elsewhere, mode=Mode.HEADLESS), policy).allowed


def test_a_folder_of_anything_else_gets_nothing_and_broken_files_hurt_nobody(tmp_path: Path) -> None:
    assert find_presets(tmp_path) == [] and propose_rules(tmp_path, []) == []
    (tmp_path / "package.json").write_text("[[[")
    (tmp_path / "Makefile").write_bytes(b"\xff\xfe\x00test:\n")
    assert find_presets(tmp_path) == ["node", "make"]
    assert propose_rules(tmp_path, ["node", "make"])
