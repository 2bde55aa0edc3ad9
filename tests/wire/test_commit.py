"""The commit in a version: read from files alone, in every form a checkout has, and left out where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wsh.wire.commit import read_head


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_checkout_in_every_form_tells_its_commit(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    assert read_head(root) is None
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    commit = git(root, "rev-parse", "HEAD")
    assert read_head(root) == commit
    git(root, "pack-refs", "--all")
    assert read_head(root) == commit
    git(root, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "side/branch")
    assert read_head(tmp_path / "other") == commit
    git(root, "checkout", "-q", "--detach")
    assert read_head(root) == commit


def test_what_is_no_checkout_has_no_commit(tmp_path: Path) -> None:
    assert read_head(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all")
    assert read_head(tmp_path) is None
    (tmp_path / ".git").unlink()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff\xfe")
    assert read_head(tmp_path) is None
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (tmp_path / ".git" / "packed-refs").write_text("nonsense refs/heads/main")
    assert read_head(tmp_path) is None
