"""git in a hostile repository: everything that can be told to run a program is told, and nothing runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from wsh.policy import Mode, Policy, Request, decide
from wsh.policy.git_guard import QUERY, guard
from wsh.policy.launch import Launch, minimal_environment, prepare
from wsh.policy.policy import allow_rules
from wsh.wire.error import CwdNotFound, ProgramNotFound

COMMANDS = [
    "git status",
    "git status --porcelain=v2 --ignored -uall",
    "git diff",
    "git diff --cached",
    "git diff --stat HEAD",
    "git log -p -2",
    "git log --oneline --graph --all",
    "git show HEAD",
    "git show HEAD:a.txt",
    "git blame a.txt",
    "git grep -n a",
    "git stash list",
    "git stash show -p",
    "git branch -a",
    "git tag -l",
    "git remote -v",
    "git reflog",
    "git ls-files -m",
    "git describe --always --dirty",
    "git cat-file -p HEAD:a.txt",
    "git shortlog -sn HEAD",
    "git rev-parse HEAD",
    "git worktree list",
    "git check-ignore a.txt",
]


def git(cwd: Path, *words: str) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["git", *words], cwd=cwd, env=env, check=True, capture_output=True)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose configuration, hooks, attributes and submodule all try to leave a file named after them."""
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "a.txt").write_text("a\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "one")
    (repository / "a.txt").write_text("b\n")
    git(repository, "stash")
    (repository / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n*.txt filter=evil2 diff=evil2\n")
    (repository / "a.txt").write_text("c\n")
    git(repository, "commit", "-qam", "two")
    (repository / "a.txt").write_text("d\n")
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "b.txt").write_text("b\n")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    git(repository, "add", "inner")
    git(repository, "commit", "-qm", "three")
    (inner / "b.txt").write_text("changed\n")

    def leaves(name: str) -> str:
        return f"touch {tmp_path}/RAN-{name}; cat"

    keys = (
        "core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy diff.external "
        "diff.evil.textconv "
        "diff.evil.command diff.evil2.textconv filter.evil.clean filter.evil.smudge filter.evil.process "
        "filter.evil2.clean "
        "filter.evil2.process merge.evil.driver gpg.program gpg.ssh.program credential.helper pager.log pager.diff "
        "pager.status pager.show pager.branch pager.grep pager.blame interactive.diffFilter alias.status alias.log "
        "sequence.editor core.alternateRefsCommand remote.origin.uploadpack uploadpack.packObjectsHook man.evil.cmd"
    ).split()
    for where in (repository, inner):
        for key in keys:
            git(where, "config", key, leaves(key))
        for key, value in (
            ("man.viewer", "evil"),
            ("log.showSignature", "true"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", f"ext::sh -c 'touch {tmp_path}/RAN-ext'"),
            ("protocol.ext.allow", "always"),
            ("status.submoduleSummary", "true"),
            ("diff.submodule", "diff"),
            ("submodule.recurse", "true"),
            ("core.untrackedCache", "true"),
            ("filter.evil.required", "true"),
            ("include.path", str(tmp_path / "included")),
            ("core.hooksPath", str(tmp_path / "hooks")),
        ):
            git(where, "config", key, value)
    (tmp_path / "included").write_text(f'[filter "evil3"]\n\tclean = "{leaves("included")}"\n')
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "pre-auto-gc", "fsmonitor-watchman", "post-checkout", "reference-transaction"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/RAN-hook-{hook}\n")
        (hooks / hook).chmod(0o755)
    for where in (repository, inner):
        os.utime(where / ".git/index", (1, 1))
    return repository


def launched(argv: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    env = minimal_environment({"PATH": os.environ["PATH"], "HOME": str(cwd.parent)}, {})
    asked = subprocess.run(QUERY, cwd=cwd, env=env, capture_output=True)
    with prepare(
        argv, os.path.realpath(cwd), env, git_settings=asked.stdout if asked.returncode == 0 else None
    ) as launch:
        return subprocess.run(
            launch.argv,
            executable=launch.path,
            cwd=f"/proc/self/fd/{launch.cwd_fd}",
            env=launch.env,
            capture_output=True,
            pass_fds=(launch.cwd_fd,),
            stdin=subprocess.DEVNULL,
            timeout=30,
        )


def ran(where: Path) -> list[str]:
    return sorted(path.name for path in where.glob("RAN-*"))


def test_the_traps_of_the_test_work_when_git_runs_bare(hostile: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(hostile.parent)}
    for command in COMMANDS:
        subprocess.run(command.split(), cwd=hostile, env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    expected = {
        "core.fsmonitor",
        "diff.external",
        "diff.evil2.textconv",
        "filter.evil2.process",
        "hook-post-index-change",
    }
    assert {f"RAN-{name}" for name in expected} <= set(ran(hostile.parent))


def test_nothing_of_a_hostile_repository_runs(hostile: Path) -> None:
    policy = Policy(rules=allow_rules(["git"], Mode.HEADLESS))
    failed = []
    for command in COMMANDS:
        verdict = decide(Request(command=command), policy)
        assert verdict.allowed, (command, verdict)
        done = launched(verdict.argv[0], hostile)
        if done.returncode > 1 or (done.returncode and done.stderr):
            failed.append((command, done.stderr))
        assert ran(hostile.parent) == [], command
    assert failed == []


def test_hardened_git_says_what_plain_git_says(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.txt").write_text("a\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "a.txt").write_text("b\n")
    assert b" M a.txt" in launched(("git", "status", "-s"), tmp_path).stdout
    assert b"-a\n+b" in launched(("git", "diff"), tmp_path).stdout
    assert b"one" in launched(("git", "log", "--oneline"), tmp_path).stdout


def test_what_the_user_configured_globally_stays() -> None:
    listing = "".join(
        f"{scope}\0{key}\n{value}\0"
        for scope, key, value in (
            ("global", "filter.lfs.clean", "git-lfs clean"),
            ("local", "filter.lfs.clean", "evil"),
            ("local", "Filter.X.Clean", "evil"),
            ("global", "credential.helper", "store"),
            ("local", "credential.helper", "evil"),
            ("local", "remote.o.uploadpack", "evil"),
        )
    ).encode()
    env = guard(("git", "fetch"), listing).env
    pairs = [(env[f"GIT_CONFIG_KEY_{i}"], env[f"GIT_CONFIG_VALUE_{i}"]) for i in range(int(env["GIT_CONFIG_COUNT"]))]
    assert ("filter.lfs.clean", "git-lfs clean") in pairs
    assert ("Filter.X.Clean", "") in pairs
    assert pairs.index(("credential.helper", "")) < pairs.index(("credential.helper", "store"))
    assert ("remote.o.uploadpack", "git-upload-pack") in pairs
    assert "GIT_ALLOW_PROTOCOL" not in env and "GIT_ALLOW_PROTOCOL" in guard(("git", "log"), None).env


# the rest of a launch


def test_the_environment_is_small_and_path_is_absolute() -> None:
    base = {
        "PATH": ".:/usr/bin::bin:/bin",
        "HOME": "/h",
        "AWS_SECRET": "x",
        "LD_PRELOAD": "x",
        "LC_ALL": "C",
        "WSH_TOKEN": "x",
    }
    env = minimal_environment(base, {"TZ": "UTC"})
    assert env["PATH"] == "/usr/bin:/bin" and env["TZ"] == "UTC" and env["LC_ALL"] == "C" and env["HOME"] == "/h"
    assert not {"AWS_SECRET", "LD_PRELOAD", "WSH_TOKEN"} & set(env)


def test_a_launch_holds_the_file_and_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with prepare(("ls",), str(folder), {"PATH": os.environ["PATH"]}) as launch:
        assert launch.identity == (os.stat(launch.path).st_dev, os.stat(launch.path).st_ino)
        folder.rename(tmp_path / "moved")
        (tmp_path / "moved/mark").touch()
        assert os.listdir(f"/proc/self/fd/{launch.cwd_fd}") == ["mark"]
    assert launch.cwd_fd == -1


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    env = {"PATH": f"{tmp_path}:relative:"}
    (tmp_path / "plain").write_text("x")
    (tmp_path / "folder").mkdir()
    for name in ("no-such-program", "plain", "folder", "./plain", "a\0b", ""):
        with pytest.raises(ProgramNotFound):
            prepare((name,), str(tmp_path), env)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for cwd in (str(tmp_path / "gone"), str(tmp_path / "plain"), str(tmp_path / "link")):
        with pytest.raises(CwdNotFound):
            prepare(("ls",), cwd, {"PATH": os.environ["PATH"]})


def test_closing_a_launch_twice_is_fine(tmp_path: Path) -> None:
    launch: Launch = prepare(("ls",), str(tmp_path), {"PATH": os.environ["PATH"]})
    launch.close()
    launch.close()
