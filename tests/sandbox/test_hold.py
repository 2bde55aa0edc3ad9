"""A held session is a session: exit codes, keys, kills, jobs and limits are as in an open one, and nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.sandbox.held import BackendName, each_backend, make_project, open_held, policy_of
from tests.support.session.running import run_with_registry
from tests.support.session.shells import AGENT, run, text_of
from tests.support.waiting import until
from wsh.process import KeeperClient
from wsh.process.keeper.tree.mark import is_alive
from wsh.sandbox import bubblewrap, landlock
from wsh.sandbox.hold import Sandboxes
from wsh.sandbox.profile import READ_ONLY, WORKSPACE, Profile
from wsh.sandbox.section import SandboxPolicy
from wsh.sandbox.spare import SpareRulesets
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import KeeperGone, SandboxRefused, SandboxUnavailable
from wsh.wire.system.place import Places

pytestmark = pytest.mark.accept


@each_backend
def test_the_exit_code_of_the_program_is_the_sessions(places: Places, tmp_path: Path, backend: BackendName) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, make_project(tmp_path), "sh -c 'exit 37'")
        await until(lambda: not session.running)
        assert session.exit_code == 37
        killed = await open_held(registry, backend, make_project(tmp_path), "sh -c 'kill -9 $$'")
        await until(lambda: not killed.running)
        assert killed.exit_code == 137

    run_with_registry(places, work)


@each_backend
def test_ctrl_c_reaches_the_program_and_not_what_holds_it(places: Places, tmp_path: Path, backend: BackendName) -> None:
    async def work(registry: SessionRegistry) -> None:
        script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"
        session = await open_held(registry, backend, make_project(tmp_path), script)
        await session.wait(WaitSpec(text="ready", generation=0, max_wait_ms=60_000))
        await session.input.send(b"\x03", AGENT)
        await until(lambda: not session.running)
        assert session.exit_code == 5

    run_with_registry(places, work)


@each_backend
def test_a_kill_gives_grace_and_leaves_nothing(places: Places, tmp_path: Path, backend: BackendName) -> None:
    project = make_project(tmp_path)

    async def work(registry: SessionRegistry) -> None:
        script = (
            "trap 'echo bye > said; exit' TERM HUP; sh -c 'trap \"\" TERM HUP; echo $$ > stubborn; while :; do sleep 0.1; done' & "
            "setsid sleep 1000 & echo ready; while :; do sleep 0.05; done"
        )
        session = await open_held(registry, backend, project, script)
        await session.wait(WaitSpec(text="ready", generation=0, max_wait_ms=60_000))
        await until((project / "stubborn").exists)
        leader = session.child.pid if session.child is not None else 0
        report = await registry.kill(session.name)
        assert report.survivors == ()
        assert report.signalled >= 3
        assert (project / "said").read_text() == "bye\n"
        assert not is_alive(leader)

    run_with_registry(places, work, session__kill_grace_ms=1000)
    assert sorted(path.name for path in project.iterdir()) == ["said", "stubborn"]


@each_backend
def test_jobs_and_the_foreground_are_those_of_the_shell(places: Places, tmp_path: Path, backend: BackendName) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, make_project(tmp_path), "bash")
        assert text_of(await run(session, "echo $PPID; sleep 300 & echo started")).splitlines()[-1] == "started"
        assert session.child is not None
        state = await registry.keeper.inspect(session.child, jobs=True)
        assert state.foreground is not None
        assert (state.foreground.comm, state.foreground.pid) == ("bash", session.pid)
        assert [job.comm for job in state.jobs] == ["sleep"]

    run_with_registry(places, work)


@each_backend
def test_limits_hold(places: Places, tmp_path: Path, backend: BackendName) -> None:
    project = make_project(tmp_path)

    async def work(registry: SessionRegistry) -> None:
        profile = replace(WORKSPACE, name="small", file_bytes=4096)
        script = "head -c 100000 /dev/zero > big; echo done"
        session = await open_held(registry, backend, project, script, profile)
        await until(lambda: not session.running)
        assert (project / "big").stat().st_size == 4096

    run_with_registry(places, work)


@each_backend
def test_secrets_of_the_environment_stay_outside(
    places: Places, tmp_path: Path, backend: BackendName, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY"):
        monkeypatch.setenv(name, "do-not-tell")

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, make_project(tmp_path), "env; echo end", env={"MINE": "kept"})
        await until(lambda: not session.running)
        text = "\n".join(str(line) for line in session.terminal.screen(styled=False).lines)
        assert "do-not-tell" not in text
        assert "MINE=kept" in text
        assert f"WSH_SESSION={session.name}" in text

    run_with_registry(places, work, session__rows=60)


@each_backend
def test_a_preloaded_library_of_the_caller_runs_inside_alone(
    places: Places, tmp_path: Path, backend: BackendName
) -> None:
    """The wrapper runs outside: what the caller puts into the environment must not reach it."""
    project = make_project(tmp_path)

    async def work(registry: SessionRegistry) -> None:
        env = {"LD_PRELOAD": str(project / "evil.so"), "BASH_ENV": "/no", "ENV": "/no", "PYTHONPATH": str(project)}
        session = await open_held(registry, backend, project, "cat", env=env)
        assert session.child is not None
        outer = await asyncio.to_thread(Path(f"/proc/{session.child.pid}/environ").read_bytes)
        if backend == "bubblewrap":
            assert outer == b""
        await registry.kill(session.name)

    run_with_registry(places, work)


@each_backend
def test_a_folder_that_is_swapped_while_the_session_starts_is_not_used(
    places: Places, tmp_path: Path, backend: BackendName, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, closed = make_project(tmp_path), tmp_path / "closed"
    closed.mkdir()
    real = Sandboxes.plan

    def plan(self: Sandboxes, *words: object, **more: object) -> object:
        made = real(self, *words, **more)  # type: ignore[arg-type]  # handed on as it came
        project.rename(tmp_path / "aside")
        project.symlink_to(closed)
        return made

    monkeypatch.setattr(Sandboxes, "plan", plan)

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, project, "sh -c 'touch made'")
        await until(lambda: not session.running)

    run_with_registry(places, work)
    assert list(closed.iterdir()) == []


@pytest.mark.parametrize("name", [".git", ".vscode", ".git/config"])
def test_a_link_that_takes_the_place_of_a_protected_path_shows_nothing(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another session, which holds a folder further up, puts it there between the plan and the mount."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("do-not-tell")
    monkeypatch.setenv("HOME", str(home))
    project = make_project(tmp_path)
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / ".git" / "config").write_text("[core]\n")
    (project / ".vscode").mkdir()
    real = Sandboxes.plan

    def plan(self: Sandboxes, *words: object, **more: object) -> object:
        made = real(self, *words, **more)  # type: ignore[arg-type]  # handed on as it came
        (project / name).rename(tmp_path / "aside")
        (project / name).symlink_to(os.path.relpath(home, (project / name).parent))
        return made

    monkeypatch.setattr(Sandboxes, "plan", plan)

    async def work(registry: SessionRegistry) -> None:
        script = f"sh -c 'echo ran; cat {home}/secret; cat {name}/secret; touch {home}/made'"
        session = await open_held(registry, "bubblewrap", project, script)
        await until(lambda: not session.running)
        told = "\n".join(str(line) for line in session.terminal.screen(styled=False).lines)
        assert "do-not-tell" not in told and "ran" not in told
        assert session.exit_code != 0

    run_with_registry(places, work)
    assert [path.name for path in home.iterdir()] == ["secret"]


@pytest.mark.parametrize(
    "name", ["a b", "tab\tand\nline", "back\\slash", "quo'te\"$(x)`x`", "日本語 ā ć", "*?[x]", "a=b", "-x"]
)
@each_backend
def test_a_folder_may_have_any_name(places: Places, tmp_path: Path, backend: BackendName, name: str) -> None:
    project = make_project(tmp_path / name)

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, project, "sh -c 'touch made; mkdir .vscode/x'")
        await until(lambda: not session.running)
        assert (project / "made").exists(), session.terminal.screen(styled=False).lines
        await until(lambda: not (project / ".vscode").exists())

    run_with_registry(places, work)


def test_a_folder_that_is_swapped_before_its_rule_is_made_is_not_read(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, closed = make_project(tmp_path), tmp_path / "closed"
    closed.mkdir()
    (closed / "secret").write_text("do-not-tell")
    real = SpareRulesets.take

    def take(self: SpareRulesets, closes_network: bool, abi: int) -> int:
        if project.exists() and not project.is_symlink():
            project.rename(tmp_path / "aside")
            project.symlink_to(closed)
        return real(self, closes_network, abi)

    monkeypatch.setattr(SpareRulesets, "take", take)

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, "landlock", project, f"sh -c 'cat {closed}/secret; ls .'", READ_ONLY)
        await until(lambda: not session.running)
        told = "\n".join(str(line) for line in session.terminal.screen(styled=False).lines)
        assert "do-not-tell" not in told and "Permission denied" in told

    run_with_registry(places, work)


@each_backend
def test_no_other_user_reads_the_environment_among_the_words_of_a_process(
    places: Places, tmp_path: Path, backend: BackendName
) -> None:
    async def work(registry: SessionRegistry) -> None:
        env = {"API_KEY": "do-not-tell", "odd name": "it's\n$HOME"}
        session = await open_held(registry, backend, make_project(tmp_path), "bash --norc", env=env)
        assert text_of(await run(session, "echo $API_KEY; env | grep -A1 odd")) == "do-not-tell\nodd name=it's\n$HOME"
        assert session.child is not None
        words = await asyncio.to_thread(Path(f"/proc/{session.child.pid}/cmdline").read_bytes)
        assert b"do-not-tell" not in words

    run_with_registry(places, work)


@each_backend
def test_a_home_folder_that_is_a_link_is_a_home_folder_inside(
    places: Places, tmp_path: Path, backend: BackendName, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk" / "me").mkdir(parents=True)
    (tmp_path / "me").symlink_to(tmp_path / "disk" / "me")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, backend, make_project(tmp_path), "sh -c 'cd && touch here && ls'")
        await until(lambda: not session.running)
        assert session.exit_code == 0, session.terminal.screen(styled=False).lines

    run_with_registry(places, work)
    assert list((tmp_path / "disk" / "me").iterdir()) == []


def test_a_folder_in_which_nothing_can_be_protected_is_refused(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path)
    real = os.mkdir

    def refuse(path: str | os.PathLike[str], mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        if os.path.basename(os.fspath(path)) == ".git":
            raise PermissionError(13, "Permission denied", path)
        real(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", refuse)

    async def work(registry: SessionRegistry) -> None:
        with pytest.raises(SandboxRefused, match=r"\.git cannot be made there: Permission denied"):
            await open_held(registry, "bubblewrap", project, "cat")
        assert len(registry) == 0

    run_with_registry(places, work)
    assert list(project.iterdir()) == []


@each_backend
def test_a_root_that_vanished_since_the_policy_was_read_ends_no_session(
    places: Places, tmp_path: Path, backend: BackendName
) -> None:
    project, gone = make_project(tmp_path), str(tmp_path / "gone")

    async def work(registry: SessionRegistry) -> None:
        profile = replace(WORKSPACE, name="build", readable=(gone,))
        session = await open_held(registry, backend, project, "sh -c 'echo well'", profile)
        await until(lambda: not session.running)
        assert session.exit_code == 0, session.terminal.screen(styled=False).lines
        with pytest.raises(SandboxRefused, match="lists as writable, cannot be opened: No such file"):
            await open_held(registry, backend, project, "cat", replace(WORKSPACE, name="build", writable=(gone,)))

    run_with_registry(places, work)


def test_a_limit_of_processes_that_is_above_the_users_own_ends_no_session(places: Places, tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    endless = hard == resource.RLIM_INFINITY  # as in many containers; then the profile's own holds
    asked, held = (100_000, 100_000) if endless else (hard + 1, hard)

    async def work(registry: SessionRegistry) -> None:
        profile = replace(WORKSPACE, name="build", processes=asked)
        session = await open_held(registry, "bubblewrap", make_project(tmp_path), "bash --norc", profile)
        assert text_of(await run(session, "ulimit -Hu")) == str(held)

    run_with_registry(places, work)


def test_a_missing_file_is_kept_free_by_a_file(places: Places, tmp_path: Path) -> None:
    """git reads `config.worktree` where it is switched on, and refuses to work with a folder of that name."""
    project = make_project(tmp_path)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run(["git", "-C", str(project), "config", "extensions.worktreeConfig", "true"], check=True)

    async def work(registry: SessionRegistry) -> None:
        session = await open_held(registry, "bubblewrap", project, "bash --norc")
        told = await run(session, "git status --short")
        assert (told.exit_code, text_of(told)) == (0, "")
        await asyncio.to_thread(subprocess.run, ["git", "-C", str(project), "status", "--short"], check=True)
        changed = await run(session, "git config --worktree core.fsmonitor evil")
        assert changed.exit_code != 0

    run_with_registry(places, work)
    assert not (project / ".git" / "config.worktree").exists()


def test_bubblewrap_that_is_installed_or_taken_away_meanwhile_is_noticed(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bubblewrap.find_missing() is not None:
        pytest.skip("no bubblewrap")
    with monkeypatch.context() as patch:
        patch.setattr(bubblewrap, "find_program", lambda: None)
        assert "not installed" in str(bubblewrap.find_missing())
    assert bubblewrap.find_missing() is None
    with monkeypatch.context() as patch:
        patch.setattr(bubblewrap, "_run", lambda words: None)
        assert bubblewrap.find_missing() is None
        patch.setattr(bubblewrap, "_tried", {})
        assert "could not be tried" in str(bubblewrap.find_missing())
        patch.undo()
        assert bubblewrap.find_missing() is None


def test_what_cannot_be_held_is_refused_with_what_is_missing(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "find_missing", lambda: "no bwrap here")
    monkeypatch.setattr(landlock, "find_missing", lambda: "no Landlock here")

    async def work(registry: SessionRegistry) -> None:
        spec = SessionSpec(command=f"touch {tmp_path}/ran", cwd=str(make_project(tmp_path)))
        for policy in (SandboxPolicy(), SandboxPolicy(accept_weaker=True)):
            with pytest.raises(SandboxUnavailable, match=r"no bwrap here.*no Landlock here"):
                await registry.open_session(replace(spec, sandbox=WORKSPACE, sandbox_policy=policy))
        assert len(registry) == 0

    run_with_registry(places, work)
    assert not (tmp_path / "ran").exists()


def test_a_profile_that_needs_more_than_is_claimed_needs_the_users_word(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "find_missing", lambda: "no bwrap here")
    monkeypatch.setattr(landlock, "find_missing", lambda: None)
    monkeypatch.setattr(landlock, "read_abi", lambda: 5)
    sandboxes = Sandboxes(places)
    with pytest.raises(SandboxUnavailable, match=r"protected.*signals|signals.*protected"):
        sandboxes.choose(WORKSPACE, SandboxPolicy())
    assert sandboxes.choose(WORKSPACE, SandboxPolicy(accept_weaker=True))[0] == "landlock"
    monkeypatch.setattr(landlock, "read_abi", lambda: 7)
    assert sandboxes.choose(READ_ONLY, SandboxPolicy()) == ("landlock", frozenset())
    with pytest.raises(SandboxUnavailable, match="loopback"):
        sandboxes.choose(Profile("x", network="loopback"), SandboxPolicy())


def test_a_link_in_a_protected_place_is_refused(places: Places, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (project / ".vscode").symlink_to(tmp_path)

    async def work(registry: SessionRegistry) -> None:
        policy = replace(policy_of("bubblewrap"), accept_weaker=False)
        if bubblewrap.find_missing() is not None:
            pytest.skip("no bubblewrap")
        spec = SessionSpec(command="cat", cwd=str(project), sandbox=WORKSPACE, sandbox_policy=policy)
        with pytest.raises(SandboxUnavailable, match="symbolic link"):
            await registry.open_session(spec)

    run_with_registry(places, work)


@each_backend
def test_nothing_is_left_where_the_keeper_dies_and_no_other_can_be_started(
    places: Places, tmp_path: Path, backend: BackendName, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path)

    async def refuse(self: KeeperClient) -> None:
        raise KeeperGone("no keeper here")

    async def work(registry: SessionRegistry) -> None:
        reopen = KeeperClient.reopen
        monkeypatch.setattr(KeeperClient, "reopen", refuse)
        session = await open_held(registry, backend, project, "cat")
        os.kill(registry.keeper.pid, signal.SIGKILL)
        await until(lambda: any("cannot be started" in line for line in registry.restored))
        await until(lambda: not [*project.iterdir(), *(places.state / "sandbox").iterdir()])
        assert not session.running
        await reopen(registry.keeper)

    run_with_registry(places, work)


@each_backend
def test_many_sessions_leave_nothing(places: Places, tmp_path: Path, backend: BackendName, torture: bool) -> None:
    project = make_project(tmp_path)
    count = 500 if torture else 12

    async def work(registry: SessionRegistry) -> None:
        for start in range(0, count, 50):
            some = range(min(50, count - start))
            opened = await asyncio.gather(
                *(open_held(registry, backend, project, "sh -c 'sleep 1000 & exec cat'") for _ in some)
            )
            leaders = [session.child.pid for session in opened if session.child is not None]
            reports = await asyncio.gather(*(registry.kill(session.name) for session in opened))
            assert all(report.survivors == () for report in reports)
            assert not any(is_alive(pid) for pid in leaders)
        assert _list_marked(registry) == []
        assert list((places.state / "sandbox").iterdir()) == []

    run_with_registry(places, work, session__kill_grace_ms=300)
    assert list(project.iterdir()) == []


def _list_marked(registry: SessionRegistry) -> list[int]:
    from wsh.process.keeper.tree.mark import read_mark

    base = registry.keeper.mark_base
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if base <= (read_mark(pid) or 0) < base + (1 << 24) and is_alive(pid)]


def test_a_program_outside_what_can_be_read_is_refused(places: Places, tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    async def work(registry: SessionRegistry) -> None:
        if bubblewrap.find_missing() is not None and landlock.find_missing() is not None:
            pytest.skip("no backend")
        policy = SandboxPolicy(accept_weaker=True)
        spec = SessionSpec(argv=[str(tool)], cwd=str(make_project(tmp_path)), sandbox=WORKSPACE, sandbox_policy=policy)
        with pytest.raises(SandboxRefused, match="outside what the profile"):
            await registry.open_session(spec)

    run_with_registry(places, work)


@each_backend
def test_a_limit_of_memory_is_not_claimed_and_bounds_each_process_where_that_is_accepted(
    places: Places, tmp_path: Path, backend: BackendName
) -> None:
    most = 256 * 1024 * 1024
    profile = replace(READ_ONLY, name="small", memory_bytes=most)

    async def work(registry: SessionRegistry) -> None:
        project = make_project(tmp_path)
        session = await open_held(registry, backend, project, "bash --norc", profile)
        assert session.holding is not None and "memory" in session.holding.weaker
        assert (
            text_of(await run(session, "ulimit -Sv; ulimit -Hv", max_wait_ms=60_000)).split() == [str(most // 1024)] * 2
        )
        wild = await session.run_command("head -c 400M /dev/zero | tail -c 400M | wc -c", AGENT, max_wait_ms=60_000)
        assert wild.output is not None and "419430400" not in wild.output.text
        # bash takes it for the hard limit where the user is not root, and refuses it to root.
        raised = await session.run_command("ulimit -Sv unlimited; ulimit -Sv", AGENT, max_wait_ms=60_000)
        assert text_of(raised).split()[-1] == str(most // 1024)
        strict = SandboxPolicy(backend=backend, accept_weaker=False)
        spec = SessionSpec(command="cat", cwd=str(project), actor=AGENT, sandbox=profile, sandbox_policy=strict)
        with pytest.raises(SandboxUnavailable, match="memory: the session has at most so much memory"):
            await registry.open_session(spec)

    run_with_registry(places, work)
