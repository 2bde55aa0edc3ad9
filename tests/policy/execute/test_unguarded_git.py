"""What git would start where nobody guards it, wherever its words lead."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wsh.git.unguarded import explain_unguarded


def _make_repository(folder: Path, **settings: str) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for key, value in settings.items():
        subprocess.run(["git", "-C", str(folder), "config", key.replace("_", "."), value], check=True)
    return folder


def test_a_repository_that_options_lead_to_is_the_one_that_is_looked_at(tmp_path: Path) -> None:
    plain = _make_repository(tmp_path / "plain")
    hostile = _make_repository(tmp_path / "hostile", core_fsmonitor="touch x")
    for words in (("-C", str(hostile)), ("--git-dir", f"{hostile}/.git"), ("-C", "../hostile")):
        assert explain_unguarded(("git", *words, "status"), str(plain)) == (
            "the setting core.fsmonitor of the repository"
        )
    assert explain_unguarded(("git", "-C", str(plain), "status"), str(hostile)) is None
    assert explain_unguarded(("git", "status"), str(tmp_path)) is None
    assert explain_unguarded(("git", "status"), str(tmp_path / "missing")) is not None


def test_a_hook_counts_for_the_commands_that_can_start_it(tmp_path: Path) -> None:
    plain = _make_repository(tmp_path / "plain")
    hook = plain / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    assert explain_unguarded(("git", "commit"), str(plain)) is None
    hook.chmod(0o755)
    assert explain_unguarded(("git", "status"), str(plain)) is None
    assert explain_unguarded(("git", "commit"), str(plain)) == "the hook pre-commit of the repository"
    assert explain_unguarded(("git", "worktree", "list"), str(plain)) is None
    assert explain_unguarded(("git", "worktree", "add", "x"), str(plain)) is not None


def test_more_submodules_than_are_looked_through_are_told(tmp_path: Path) -> None:
    plain = _make_repository(tmp_path / "plain")
    entries = ""
    for number in range(40):
        (plain / f"part{number}" / ".git").mkdir(parents=True)
        entries += f"160000 {'1' * 40}\tpart{number}\n"
    subprocess.run(["git", "update-index", "--index-info"], cwd=plain, input=entries, text=True, check=True)
    assert explain_unguarded(("git", "status"), str(plain)) == "more submodules than are looked through"
