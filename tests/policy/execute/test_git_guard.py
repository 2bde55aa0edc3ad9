"""git behind its guard, and the rest of a launch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.policy.hostile import git, run_guarded
from wsh.git.guard import Unguarded, guard, index_query, query
from wsh.policy.execute.launch import Launch, minimal_environment, prepare
from wsh.wire.error import CwdNotFound, ProgramNotFound, Refused


def launched(argv: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return run_guarded(argv, cwd, cwd.parent)


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
        )
    ).encode()
    env = guard(("git", "fetch"), listing).env
    pairs = [(env[f"GIT_CONFIG_KEY_{i}"], env[f"GIT_CONFIG_VALUE_{i}"]) for i in range(int(env["GIT_CONFIG_COUNT"]))]
    assert ("filter.lfs.clean", "git-lfs clean") in pairs
    assert ("Filter.X.Clean", "") in pairs
    assert pairs.index(("credential.helper", "")) < pairs.index(("credential.helper", "store"))
    assert "GIT_ALLOW_PROTOCOL" not in env and "GIT_ALLOW_PROTOCOL" in guard(("git", "log"), b"").env


def test_a_setting_whose_first_value_counts_refuses_what_would_run_it(tmp_path: Path) -> None:
    far, near, trap = tmp_path / "far", tmp_path / "near", tmp_path / "trap"
    far.mkdir()
    near.mkdir()
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for folder in (far, near):
        git(folder, "init", "-q")
    git(near, "remote", "add", "origin", str(far))
    assert launched(("git", "fetch", "origin"), near).returncode == 0
    git(near, "config", "core.gitProxy", str(trap))
    launched(("git", "fetch", "git://127.0.0.1:1/x"), near)
    git(near, "config", "remote.origin.uploadpack", str(trap))
    assert launched(("git", "log"), near).returncode != 127
    for command in ("fetch", "pull", "push"):
        with pytest.raises(Refused, match="asked by"):
            launched(("git", command, "origin"), near)
    assert not (tmp_path / "sprung").exists()


def test_a_command_that_would_look_into_submodules_is_refused_where_there_are_any(tmp_path: Path) -> None:
    inner, outer, trap = tmp_path / "inner", tmp_path / "outer", tmp_path / "trap"
    inner.mkdir()
    outer.mkdir()
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for folder in (inner, outer):
        git(folder, "init", "-q")
        (folder / "a.txt").write_text("a\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "one")
    (outer / "b.txt").write_text("b\n")
    assert launched(("git", "add", "-A"), outer).returncode == 0
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(outer / "sub", "config", "filter.evil.clean", str(trap))
    (outer / "sub" / ".gitattributes").write_text("* filter=evil\n")
    (outer / "sub" / "a.txt").write_text("A\n")
    for command in ("add -A", "commit -am x", "stash", "stash push", "switch -", "checkout .", "restore ."):
        with pytest.raises(Refused, match="submodules"):
            launched(("git", *command.split()), outer)
    for command in ("status", "stash list", "fetch", "log"):
        assert launched(("git", *command.split()), outer).returncode == 0, command
    assert not (tmp_path / "sprung").exists()


def test_the_question_goes_where_the_command_goes_and_asks_nothing_else() -> None:
    asked = query(("git", "-C", "a", "-p", "--help", "--git-dir=b", "-c", "x.y=z", "--exec-path=e", "log", "-C"))
    assert asked[:6] == ("git", "-C", "a", "--git-dir=b", "-c", "x.y=z") and asked[6] == "config"
    assert query(("git", "--version"))[:2] == query(("git",))[:2] == ("git", "config")
    assert index_query(("git", "log")) is None and index_query(("git", "-C", "a", "describe", "--dirt")) is not None
    assert guard(("git", "-C", "a", "status", "-s"), b"").argv == (
        *("git", "-C", "a", "status", "--ignore-submodules=dirty", "-s"),
    )


def test_an_answer_that_is_not_understood_is_no_answer() -> None:
    for answer in (b"git version 2\n", b"local\0", b"local\0a.b\nc"):
        with pytest.raises(Unguarded):
            guard(("git", "status"), answer)
    many = b"".join(b"local\0filter.f%d.clean\nx\0" % number for number in range(5000))
    with pytest.raises(Unguarded, match="more programs"):
        guard(("git", "status"), many)


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


@pytest.mark.parametrize("program", ["cargo", "rustc", "python3"])
def test_a_folder_does_not_choose_what_answers_with_a_version(tmp_path: Path, program: str) -> None:
    shims, project = tmp_path / "shims", tmp_path / "project/below"
    shims.mkdir()
    project.mkdir(parents=True)
    (shims / "rustup").write_text("#!/bin/sh\n")
    (shims / "rustup").chmod(0o755)
    (shims / program).symlink_to("rustup")
    argv, env = (program, "--version"), {"PATH": str(shims)}
    selector = project.parent / "rust-toolchain.toml"
    selector.write_text('# see https://example.invalid/\n[toolchain]\nchannel = "stable"\n')
    with prepare(argv, str(project), env) as launch:
        assert launch.env["GOTOOLCHAIN"] == "local"
    selector.write_text('[toolchain]\npath = "/somewhere/else"\n')
    with pytest.raises(Refused, match=r"rust-toolchain\.toml"):
        prepare(argv, str(project), env)
    selector.unlink()
    os.mkfifo(selector)  # and nobody waits for who might write to it
    with pytest.raises(Refused, match=r"rust-toolchain\.toml"):
        prepare(argv, str(project), env)
    # Whoever allowed more than that has let the folder choose.
    prepare((program, "build"), str(project), env).close()
