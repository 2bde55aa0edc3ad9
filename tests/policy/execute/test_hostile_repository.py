"""Every setting that names a program, wherever it can stand, under every command the shipped policy allows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.policy.hostile import (
    PLACES,
    Traps,
    build,
    commands,
    documented,
    run_bare,
    run_guarded,
    settings,
    template,
)
from wsh.policy import Mode, Policy, PolicyRequest, decide
from wsh.policy.policy import allow_rules
from wsh.policy.rule.default import HEADLESS_ALLOW
from wsh.wire.error import Refused
from wsh.workspace.file.listing import list_files
from wsh.workspace.index.status import describe_git

POLICY = Policy(rules=allow_rules(HEADLESS_ALLOW, Mode.HEADLESS))
# Telling ones, for every run of the tests; all of them are in `make torture`.
SAMPLE = (
    "git status", "git status -v", "git diff", "git diff --submodule=short", "git log -p -m --all", "git show merged", "git blame a0.txt", "git stash list -p",
    "git reflog show -p", "git ls-files -m", "git describe --always --dirty", "git grep -n a", "git log --pretty=evil", "git cat-file -p HEAD:a0.txt",
)  # fmt: skip
QUICK = (
    "git status",
    "git status -v",
    "git diff",
    "git log -p -m --all",
    "git blame a0.txt",
    "git stash list -p",
    "git describe --always --dirty",
)


@pytest.fixture(scope="module")
def model_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(tmp_path_factory.mktemp("hostile"))


def allowed(command: str) -> tuple[str, ...]:
    verdict = decide(PolicyRequest(command=command), POLICY)
    assert verdict.allowed, (command, verdict.message)
    return verdict.argv[0]


def test_the_shipped_policy_allows_what_the_campaign_runs() -> None:
    assert [command for command in commands() if not decide(PolicyRequest(command=command), POLICY).allowed] == []
    assert {*SAMPLE, *QUICK} <= set(commands())


@pytest.mark.parametrize("place", ["config", "submodule", "loose-submodule", "linked-worktree-config", "partial-path"])
def test_the_traps_spring_when_git_runs_bare(model_repository: Path, tmp_path: Path, place: str) -> None:
    traps = Traps(tmp_path / "traps")
    hostile = build(model_repository, tmp_path / "work", place, settings(traps, place))
    names = {
        "config": {"core.fsmonitor", "filter._.process:0", "filter._.process:2", "filter._.process:3", "diff._.textconv:0", "gpg.openpgp.program"},
        "submodule": {"filter._.process:0"},
        "loose-submodule": {"filter._.process:2"},
        "linked-worktree-config": {"core.fsmonitor", "filter._.process:0"},
        "partial-path": {"remote.origin.uploadpack"},
    }[place]  # fmt: skip
    missing = {f"{place}:{name}" for name in names}
    for command in SAMPLE:
        run_bare(command.split(), hostile.cwd, tmp_path)
        missing -= set(traps.sprung())
        if not missing:
            return
    raise AssertionError(f"of the traps only these sprang: {traps.sprung()}")


@pytest.mark.torture
@pytest.mark.parametrize("place", PLACES)
def test_nothing_runs_wherever_the_settings_stand(
    model_repository: Path, tmp_path: Path, place: str, torture: bool
) -> None:
    traps = Traps(tmp_path / "traps")
    hostile = build(model_repository, tmp_path / "work", place, settings(traps, place))
    outcome: dict[str, int | str] = {}
    for command in commands() if torture else QUICK:
        try:
            outcome[command] = run_guarded(allowed(command), hostile.cwd, tmp_path).returncode
        except Refused as problem:
            outcome[command] = problem.message
        assert traps.sprung() == [], (place, command)
    if place in ("config", "include", "submodule", "linked-worktree"):
        # Refusing everything would be no feat: the commands still answer.
        assert outcome["git status"] == outcome["git diff"] == outcome["git blame a0.txt"] == 0, outcome


@pytest.mark.parametrize("place", ["config", "both-submodules", "config.worktree", "include", "gitdir-file"])
def test_nothing_runs_when_the_workspace_tools_look(model_repository: Path, tmp_path: Path, place: str) -> None:
    traps = Traps(tmp_path / "traps")
    hostile = build(model_repository, tmp_path / "work", place, settings(traps, place))
    described = describe_git(str(hostile.cwd))
    assert described is not None and described["changed"] > 0
    assert "a0.txt" in list_files(str(hostile.cwd)).paths
    assert traps.sprung() == []


@pytest.mark.parametrize(
    "before",
    [
        ("-C", "work/repository"),
        ("--no-pager", "-C", "work", "-C", "repository"),
        ("-P", "--git-dir=work/repository/.git"),
    ],
)
def test_nothing_runs_when_git_is_sent_to_another_folder(
    model_repository: Path, tmp_path: Path, before: tuple[str, ...]
) -> None:
    """No shipped rule allows it; one that ends in ` *` does."""
    traps = Traps(tmp_path / "traps")
    build(model_repository, tmp_path / "work", "config", settings(traps, "there"))
    for command in SAMPLE:
        try:
            run_guarded(("git", *before, *command.split()[1:]), tmp_path, tmp_path)
        except Refused:
            continue
    assert traps.sprung() == []


@pytest.mark.torture
def test_nothing_runs_for_any_documented_key(model_repository: Path, tmp_path: Path, torture: bool) -> None:
    """One key at a time, so that none hides another: a value that git rejects ends the command at once."""
    keys = sorted(set(documented()))
    assert len(keys) > 500
    for key in keys if torture else keys[::97]:
        folder = tmp_path / "one"
        traps = Traps(folder / "traps")
        hostile = build(model_repository, folder / "work", "config", settings(traps, "one", [key]))
        for command in SAMPLE:
            try:
                run_guarded(allowed(command), hostile.cwd, tmp_path)
            except Refused:
                continue
        assert traps.sprung() == [], key
        shutil.rmtree(folder)
