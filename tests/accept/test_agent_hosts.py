"""The real Claude Code and Codex with our hook, installed as a person does it; only their model is a stub on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.accept.model import StubModel, running_model
from tests.support.policy.home import home_with_policy
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places

PACKAGES = ("@anthropic-ai/claude-code@2.1.197", "@openai/codex@0.166.0")
WSH = Path(sys.executable).parent / "wsh"
POLICY = """[headless]
allow = ["touch allowed"]
[[rule]]
effect = "deny"
command = "touch denied"
"""
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where they are installed; `WSH_TEST_AGENT_HOSTS` names a folder where they already are."""
    folder = Path(os.environ.get("WSH_TEST_AGENT_HOSTS") or tmp_path_factory.mktemp("npm"))
    if not (folder / "node_modules").is_dir():
        words = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder), *PACKAGES]
        subprocess.run(words, check=True, timeout=1500, stdout=subprocess.DEVNULL)
    return folder / "node_modules"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    with home_with_policy(tmp_path_factory.mktemp("hosts"), POLICY) as found:
        yield found


@pytest.fixture(scope="module")
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places, environ={"WSH_APPROVALS_SERVER": "true"}, check_left=False) as running:
        yield running


@pytest.fixture
def model() -> Iterator[StubModel]:
    with running_model() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def install(client: str) -> None:
    words = [str(WSH), "hook", "install", "--client", client, "--write"]
    subprocess.run(words, check=True, timeout=120, capture_output=True)


def run(words: list[str], project: Path, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        words,
        cwd=project,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def find_claude(programs: Path) -> str:
    (found,) = programs.glob("@anthropic-ai/claude-code-*/claude")
    return str(found)


def claude_environ(model: StubModel) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def test_claude_code_runs_what_a_rule_allows_and_hears_why_another_forbids(
    programs: Path, server: RunningServer, model: StubModel, project: Path
) -> None:
    install("claude-code")
    for command in ("touch allowed", "touch denied", "touch neither"):
        model.command = command
        run([find_claude(programs), "-p", "go on"], project, claude_environ(model))
    assert [path.name for path in project.iterdir()] == ["allowed"]
    assert len(model.results) == 3 and "rule" in model.results[1], model.results


def test_claude_code_waits_for_a_card_and_runs_what_is_approved(
    programs: Path, server: RunningServer, model: StubModel, project: Path
) -> None:
    """In a session of its own, as a person uses it, where it would ask them by itself."""
    install("claude-code")
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(project): {"hasTrustDialogAccepted": True}},
    }
    approved_key = {"customApiKeyResponses": {"approved": ["none"], "rejected": []}}
    (Path(os.environ["HOME"]) / ".claude.json").write_text(json.dumps(known | approved_key))
    model.command = "touch by-card"
    body = {
        "name": "claude",
        "command": f"{find_claude(programs)} 'go on'",
        "cwd": str(project),
        "env": claude_environ(model),
        "rows": 40,
        "cols": 120,
    }
    made = server.request("POST", "/sessions", body)
    assert made.status == 201, made

    def see() -> str:
        return str(server.get("/sessions/claude/screen?format=plain"))

    def find_card() -> dict[str, Any] | None:
        waiting = [one for one in server.get("/approvals")["requests"] if one["state"] == "waiting" and one["digest"]]
        return waiting[0] if waiting else None

    card = wait_until(find_card, "the card", seen=see)
    assert card is not None
    assert card["command"] == "touch by-card" and card["kind"] == "hook" and not (project / "by-card").exists()
    answer = {"digest": card["digest"], "decision": "approve"}
    assert server.request("POST", f"/approvals/{card['id']}", answer).status == 200
    wait_until(lambda: (project / "by-card").exists(), "the approved command", seen=see)
    wait_until(lambda: model.results, "the host to tell its model", seen=see)
    assert server.request("DELETE", "/sessions/claude").status < 300


def test_codex_runs_what_a_rule_allows_and_hears_why_another_forbids(
    programs: Path, server: RunningServer, model: StubModel, project: Path
) -> None:
    install("codex")
    home = Path(os.environ["HOME"])
    (home / ".codex" / "config.toml").write_text(
        f'model = "stub"\nmodel_provider = "stub"\nsandbox_mode = "danger-full-access"\n[model_providers.stub]\nname = "stub"\n'
        f'base_url = "{model.url}/v1"\nwire_api = "responses"\nrequires_openai_auth = false\n'
    )
    # What a person confirms once at /hooks.
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "go on"]
    said = []
    for command in ("touch allowed", "touch denied"):
        model.command = command
        said.append(run([str(programs / ".bin" / "codex"), *words], project, {}))
    assert [path.name for path in project.iterdir()] == ["allowed"], said
    assert len(model.results) == 2 and "rule" in model.results[1], model.results
    assert all("hook: PreToolUse Completed" in one or "PreToolUse Blocked" in one for one in said), said
