"""`execute_command` with the keeper's runner and real programs. Each scenario of the execution document has its test."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from tests.support.contract.world import with_keeper
from tests.support.operation.rooms import make_rooms
from tests.support.waiting import until
from wsh.app.headless import HeadlessRunner
from wsh.contract.execute_command import ENOENT_HINT, ExecuteCommand
from wsh.mcp.tool.execute import DESCRIPTION, declare_execute
from wsh.policy.audit import Audit
from wsh.process import HeadlessRun
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places
from wsh.wire.tool import Family, Stream, ToolFailure, ToolOutcome

T = TypeVar("T")


@dataclass
class Context:
    caller: Caller
    timeout_ms: int = 20_000
    toolsets: tuple[Family, ...] = ("terminal", "exec")
    told: list[tuple[str, str]] = field(default_factory=list)
    deadline: float = 0.0

    def progress(self, message: str, *, stream: Stream = "info", phase: str = "progress") -> None:
        self.told.append((stream, message))


@dataclass
class World:
    """A caller in `folder`, with an `npm` that says where it runs."""

    service: ExecuteCommand
    folder: Path
    audit: Audit

    async def call(self, command: str, cwd: str | None = None, **environ: str) -> ToolOutcome:
        return await self.call_within(20_000, command, cwd, **environ)

    async def call_within(self, timeout_ms: int, command: str, cwd: str | None = None, **environ: str) -> ToolOutcome:
        context = Context(
            Caller("agent", "caller-1", "token", client="test", cwd=str(self.folder), environ=environ), timeout_ms
        )
        context.deadline = asyncio.get_running_loop().time() + context.timeout_ms / 1000
        arguments: dict[str, Any] = {"command": command} | ({"cwd": cwd} if cwd is not None else {})
        return await declare_execute(20_000).bind(make_rooms(execute=self.service)).run(arguments, context)

    async def succeed(self, command: str, cwd: str | None = None, **environ: str) -> dict[str, Any]:
        outcome = await self.call(command, cwd, **environ)
        assert not outcome.is_error and outcome.text is not None
        parsed = yaml.safe_load(outcome.text)
        assert parsed == outcome.structured
        assert isinstance(parsed, dict)
        return parsed

    async def fail(self, command: str, cwd: str | None = None, **environ: str) -> dict[str, Any]:
        with pytest.raises(ToolFailure) as caught:
            await self.call(command, cwd, **environ)
        return caught.value.to_payload()

    @property
    def ran(self) -> list[str]:
        """Folders that npm ran in."""
        note = self.folder.parent / "npm-ran"
        return note.read_text().splitlines() if note.exists() else []


def real(path: Path | str) -> str:
    return os.path.realpath(path)


@asynccontextmanager
async def playing(
    places: Places, tmp_path: Path, max_output_bytes: int = 1024 * 1024, result_bytes: int = 256 * 1024
) -> AsyncIterator[World]:
    monorepo = tmp_path / "monorepo"
    (monorepo / "frontend").mkdir(parents=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npm").write_text(f"#!/bin/sh\npwd -P >> {tmp_path}/npm-ran\necho 10.9.2\n")
    (programs / "npm").chmod(0o755)
    base = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SECRET_TOKEN": "hunter2"}

    async with with_keeper(places) as held:
        runner = HeadlessRunner(held.keeper, base)
        audit = Audit(places.audit_log)
        service = ExecuteCommand(
            runner, audit, max_output_bytes=max_output_bytes, result_bytes=result_bytes, home=str(tmp_path)
        )
        yield World(service, monorepo, audit)


# the scenarios of the document, by their names


async def test_enoent_error_hint(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        for command in ("no-such-program", "/no/such/program -x", "./missing"):
            failure = await world.fail(command, ALLOWED_COMMANDS="*")
            assert failure["code"] == "NOT_FOUND"
            assert ENOENT_HINT in failure["message"] and "ENOENT" in failure["message"]
            assert "Note: This tool does not support interactive commands. Ensure the command is non-interactive and the executable exists." in failure["message"]  # fmt: skip


async def test_a_file_that_cannot_be_started_is_not_called_missing(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        for name, text, mode in (
            ("plain", "x", 0o600),
            ("no-shebang", "echo x", 0o700),
            ("lost", "#!/no/such/interpreter", 0o700),
        ):
            file = world.folder / name
            file.write_text(text)
            file.chmod(mode)
            failure = await world.fail(f"./{name}", ALLOWED_COMMANDS="*")
            assert failure["code"] == "NOT_FOUND" and ENOENT_HINT in failure["message"]
            assert "is there" in failure["message"] and "not found" not in failure["message"]
        failure = await world.fail("ls", cwd="plain", ALLOWED_COMMANDS="ls")
        assert failure["code"] == "NOT_FOUND" and "is not a folder" in failure["message"]


async def test_allowed_command(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        done = await world.succeed("ls", ALLOWED_COMMANDS="ls,cat")
        assert done == {"exit_code": 0, "stdout": "frontend\n", "stderr": ""}


async def test_disallowed_command(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        failure = await world.fail("pwd", ALLOWED_COMMANDS="ls")
        assert failure["code"] == "FORBIDDEN" and "not allowed" in failure["message"]
        failure = await world.fail("npm -v", ALLOWED_COMMANDS="ls")
        assert failure["code"] == "FORBIDDEN" and world.ran == []
        assert (await world.fail("ls"))["code"] == "FORBIDDEN", "unset means none"


async def test_wildcard_allowlist(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        assert (await world.succeed("whoami", ALLOWED_COMMANDS="*"))["exit_code"] == 0


async def test_yaml_output(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        outcome = await world.call("printf 'a\\nb\\n'", ALLOWED_COMMANDS="printf")
        assert outcome.text == 'exit_code: 0\nstdout: |\n  a\n  b\nstderr: ""\n'
        assert yaml.safe_load(outcome.text) == {"exit_code": 0, "stdout": "a\nb\n", "stderr": ""}


async def test_execute_with_relative_cwd(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        done = await world.succeed("npm -v", "frontend", ALLOWED_COMMANDS="npm")
        assert done == {"exit_code": 0, "stdout": "10.9.2\n", "stderr": ""}
        assert world.ran == [real(world.folder / "frontend")]


async def test_execute_with_absolute_cwd(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        done = await world.succeed("npm -v", str(world.folder / "frontend"), ALLOWED_COMMANDS="npm")
        assert done["exit_code"] == 0 and world.ran == [real(world.folder / "frontend")]


async def test_error_on_non_existent_cwd(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        failure = await world.fail("npm -v", "does-not-exist", ALLOWED_COMMANDS="npm")
        assert failure["code"] == "NOT_FOUND" and "does-not-exist" in failure["message"] and world.ran == []


async def test_a_cwd_that_no_path_can_be_is_refused_and_recorded(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        failure = await world.fail("npm -v", "x" * 2_000_000, ALLOWED_COMMANDS="npm")
        assert failure["code"] == "INVALID_REQUEST" and "cwd is not a usable path" in failure["message"]
        (entry,) = world.audit.read()
        assert entry["effect"] == "deny" and entry["cwd"] == "x" * 4096


async def test_allowed_when_within_allowed_cwd_roots(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        roots = str(world.folder)
        await world.succeed("npm -v", f"{roots}/frontend", ALLOWED_COMMANDS="npm", ALLOWED_CWD_ROOTS=roots)
        await world.succeed("npm -v", roots, ALLOWED_COMMANDS="npm", ALLOWED_CWD_ROOTS=roots)
        assert len(world.ran) == 2


async def test_rejected_when_outside_allowed_cwd_roots(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        (world.folder / "way-out").symlink_to("/tmp")
        for cwd in ("/tmp", "way-out", "frontend/../..", "..", "/"):
            failure = await world.fail("npm -v", cwd, ALLOWED_COMMANDS="npm", ALLOWED_CWD_ROOTS=str(world.folder))
            assert (
                failure["code"] == "FORBIDDEN" and "cwd" in failure["message"] and "not allowed" in failure["message"]
            )
        assert world.ran == []


async def test_no_restriction_when_allowed_cwd_roots_is_unset(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        await world.succeed("npm -v", "/tmp", ALLOWED_COMMANDS="npm")
        await world.succeed("npm -v", "/tmp", ALLOWED_COMMANDS="npm", ALLOWED_CWD_ROOTS="")
        assert world.ran == [real("/tmp")] * 2


async def test_reject_when_allowed_cwd_roots_contains_an_invalid_root(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        roots = f"{world.folder},/path/that/does/not/exist"
        cwd = str(world.folder / "frontend")
        failure = await world.fail("npm -v", cwd, ALLOWED_COMMANDS="npm", ALLOWED_CWD_ROOTS=roots)
        assert "configuration problem" in failure["message"] and "ALLOWED_CWD_ROOTS" in failure["message"]
        assert world.ran == []
        await world.succeed("npm -v", ALLOWED_COMMANDS="npm", ALLOWED_CWD_ROOTS=roots)


# what else it owes


def test_the_description_says_what_it_is_for() -> None:
    assert "ONLY for non-interactive commands" in DESCRIPTION and "not supported" in DESCRIPTION


async def test_a_non_zero_exit_and_a_signal_are_results(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        assert (await world.succeed("false", ALLOWED_COMMANDS="*"))["exit_code"] == 1
        done = await world.succeed("sh -c 'echo out; echo err >&2; exit 7'", ALLOWED_COMMANDS="sh")
        assert done == {"exit_code": 7, "stdout": "out\n", "stderr": "err\n"}
        done = await world.succeed("sh -c 'kill -9 $$'", ALLOWED_COMMANDS="sh")
        assert done["signal"] == "SIGKILL" and done["exit_code"] is None


async def test_any_bytes_come_out_as_valid_yaml(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        (world.folder / "bytes").write_bytes(bytes(range(256)) + b"\n---\n...\n: x\n\xe2\x80\xa8end\n\n")
        done = await world.succeed("cat bytes", ALLOWED_COMMANDS="cat")
        assert done["stdout"] == (bytes(range(256)) + b"\n---\n...\n: x\n\xe2\x80\xa8end\n\n").decode(errors="replace")


async def test_stdin_is_closed_and_the_environment_is_small(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        assert (await world.succeed("cat", ALLOWED_COMMANDS="cat"))["stdout"] == ""
        env = (await world.succeed("env", ALLOWED_COMMANDS="env"))["stdout"]
        assert "hunter2" not in env and "SECRET_TOKEN" not in env and "PATH=" in env and "ALLOWED_COMMANDS" not in env


async def test_shell_syntax_is_refused_with_a_hint_and_nothing_runs(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        for command in ("npm -v; npm -v", "npm -v | cat", "npm -v > f", "npm $(npm)", "npm -v &", "npm -v\nnpm -v"):
            failure = await world.fail(command, ALLOWED_COMMANDS="*")
            assert failure["code"] == "INVALID_REQUEST" and "without a shell" in failure["hint"], command
        assert world.ran == [] and not (world.folder / "f").exists()


async def test_the_irrecoverable_is_refused_whatever_is_allowed(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        # Nothing here could do harm if it did run: the folders are the test's own.
        wiped = str(tmp_path)
        for command in (f"rm -r {wiped}/missing/..", f"sh -c 'rm -rf {wiped}'", "mkfs.ext4 /dev/does-not-exist"):
            failure = await world.fail(command, ALLOWED_COMMANDS="*")
            assert failure["code"] == "FORBIDDEN" and failure["reason"] == "irrecoverable", command


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def numbers_in(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()] if file.exists() else []


async def pids_in(file: Path, count: int) -> list[int]:
    await until(lambda: len(numbers_in(file)) >= count, f"{count} programs", seen=lambda: numbers_in(file))
    return numbers_in(file)


TREE = "sh -c 'echo $$ >> pids; (setsid sh -c \"echo \\$\\$ >> pids; sleep 60\" &) ; echo begun; sleep 60'"


async def test_a_deadline_ends_the_whole_tree(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        with pytest.raises(ToolFailure) as caught:
            await world.call_within(1500, TREE, ALLOWED_COMMANDS="sh")
        failure = caught.value.to_payload()
        assert failure["code"] == "TOOL_TIMEOUT" and failure["timeoutMs"] == 1500 and failure["stdout"] == "begun\n"
        for pid in await pids_in(world.folder / "pids", 2):
            assert not is_alive(pid)


async def test_cancelling_ends_the_whole_tree(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        call = asyncio.create_task(world.call(TREE, ALLOWED_COMMANDS="sh"))
        pids = await pids_in(world.folder / "pids", 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not any(map(is_alive, pids))
        assert world.audit.read()[-1]["ended"] == "cancelled"


async def test_output_is_bounded_and_the_newest_is_kept(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, max_output_bytes=10_000) as world:
        done = await world.succeed("seq 1 100000", ALLOWED_COMMANDS="seq")
        assert done["stdout"].endswith("99999\n100000\n") and len(done["stdout"]) == 10_000
        assert done["stdout_dropped_bytes"] == 588_895 - 10_000


async def test_every_call_leaves_a_decision_and_an_end(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        await world.succeed("npm -v", "frontend", ALLOWED_COMMANDS="npm")
        await world.fail("pwd", ALLOWED_COMMANDS="npm")
        await world.fail("ls; ls", ALLOWED_COMMANDS="ls")
        entries = world.audit.read()
        assert [(e["kind"], e.get("effect"), e.get("reason")) for e in entries] == [
            ("decision", "allow", "allowed"),
            ("result", None, None),
            ("decision", "deny", "not_allowlisted"),
            ("decision", "deny", "shell_syntax"),
        ]
        assert entries[0]["trace_id"] == entries[1]["trace_id"] and entries[1]["exit_code"] == 0
        assert entries[0]["argv"] == ["npm", "-v"] and entries[0]["cwd"] == real(world.folder / "frontend")
        assert world.audit.verify().intact


async def test_without_a_trail_nothing_runs(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        places.audit_log.mkdir(parents=True)
        with pytest.raises(OSError):
            await world.call("npm -v", ALLOWED_COMMANDS="npm")
        assert world.ran == []


async def test_git_does_not_run_what_a_repository_configures(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        await world.succeed("git init -q", ALLOWED_COMMANDS="git")
        await world.succeed(f"git config core.fsmonitor 'touch {tmp_path}/ran'", ALLOWED_COMMANDS="git")
        done = await world.succeed("git status --short", ALLOWED_COMMANDS="git")
        assert done["exit_code"] == 0 and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("driver", [b"plain", b"e\xef\xbf\xbdvil", b"raw\xff\xfe"])
async def test_git_does_not_run_a_filter_whatever_its_name(places: Places, tmp_path: Path, driver: bytes) -> None:
    async with playing(places, tmp_path) as world:
        await world.succeed("git init -q", ALLOWED_COMMANDS="git")
        (world.folder / "f").write_text("a\n")
        await world.succeed("git add f", ALLOWED_COMMANDS="git")
        (world.folder / "f").write_text("b\n")
        (world.folder / ".gitattributes").write_bytes(b"f filter=" + driver + b"\n")
        with (world.folder / ".git/config").open("ab") as config:
            config.write(b'[filter "' + driver + b'"]\n\tclean = "touch %s/ran; cat"\n' % bytes(tmp_path))
        done = await world.succeed("git diff", ALLOWED_COMMANDS="git")
        assert "+b" in done["stdout"] and not (tmp_path / "ran").exists()
    bare = subprocess.run(["git", "diff"], cwd=tmp_path / "monorepo", capture_output=True)  # noqa: ASYNC221
    assert (tmp_path / "ran").exists(), ("the trap works", bare)


async def test_git_is_refused_where_it_would_run_what_a_repository_configures(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        await world.succeed("git init -q", ALLOWED_COMMANDS="git")
        await world.succeed("git init -q inner", ALLOWED_COMMANDS="git")
        inner = "git -C inner -c user.name=a -c user.email=a@b"
        await world.succeed(f"{inner} commit -q --allow-empty -m x", ALLOWED_COMMANDS="git")
        assert (await world.succeed("git --version", ALLOWED_COMMANDS="git"))["exit_code"] == 0
        await world.succeed("git -c advice.addEmbeddedRepo=false add inner", ALLOWED_COMMANDS="git")
        failed = await world.fail("git describe --always --dirty", ALLOWED_COMMANDS="git")
        assert failed["code"] == "FORBIDDEN" and "submodules" in failed["message"]
        (world.folder / ".git/config").write_text("[filter")
        failed = await world.fail("git status", ALLOWED_COMMANDS="git")
        assert failed["code"] == "FORBIDDEN" and "git is not run" in failed["message"]


async def test_a_program_that_is_replaced_before_it_starts_is_not_run(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        from wsh.policy.execute import launch

        held = launch.find_program("npm", f"{tmp_path}/programs", str(world.folder))
        (tmp_path / "programs/other").write_text("#!/bin/sh\ntouch replaced\n")
        (tmp_path / "programs/other").chmod(0o755)
        (tmp_path / "programs/other").rename(tmp_path / "programs/npm")
        runner = world.service.runner
        assert isinstance(runner, HeadlessRunner)
        from wsh import process

        with pytest.raises(Exception, match="npm"):
            await process.start(runner.keeper, ["npm"], cwd=str(world.folder), env={}, path=held[0], identity=held[1])
        assert not (world.folder / "replaced").exists()


def run_both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, tuple[T, T]]:
    async def both() -> tuple[T, T]:
        a, b = await asyncio.gather(first, second)
        return a, b

    return both()


async def test_calls_run_side_by_side(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        # Each waits for the other one's file.
        meet = [f"touch {tmp_path}/{a}; while ! test -e {tmp_path}/{b}; do sleep 0.05; done" for a, b in ("xy", "yx")]
        await run_both(*(world.succeed(f"sh -c '{command}'", ALLOWED_COMMANDS="*") for command in meet))


async def test_one_answer_carries_a_part_and_says_how_the_rest_is_read(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path, result_bytes=5000) as world:
        done = await world.succeed("seq 1 100000", ALLOWED_COMMANDS="seq")
        assert done["stdout"].endswith("99999\n100000\n") and len(done["stdout"]) <= 5000
        assert done["stdout_dropped_bytes"] == 588_895 - len(done["stdout"])
        assert done["output_of"] in done["rest"]
        zeros = await world.succeed("head -c 1000000 /dev/zero", ALLOWED_COMMANDS="head")
        assert len(json.dumps(zeros)) < 7000, "what is escaped is counted as it is escaped"


async def test_a_full_screen_program_is_answered_at_once_and_ended(places: Places, tmp_path: Path) -> None:
    script = tmp_path / "screen"
    script.write_text("#!/bin/sh\nprintf '\\033[?1049hhello'\nexec sleep 600\n")
    script.chmod(0o755)
    blind = tmp_path / "blind"
    blind.write_text("#!/bin/sh\necho 'Vim: Warning: Output is not to a terminal' >&2\nexec sleep 600\n")
    blind.chmod(0o755)
    async with playing(places, tmp_path) as world:
        for program in (script, blind):
            with pytest.raises(ToolFailure) as failed:
                await world.call_within(600_000, str(program), ALLOWED_COMMANDS="*")
            assert failed.value.code == "CAPABILITY_MISSING"
            assert "does not support interactive commands" in failed.value.message
            assert "wsh_run_command" in (failed.value.hint or "")
        assert world.audit.read()[-1]["ended"] == "interactive"


async def test_a_program_that_merely_mentions_a_terminal_and_ends_is_a_result(places: Places, tmp_path: Path) -> None:
    script = tmp_path / "quick"
    script.write_text("#!/bin/sh\necho 'stdin is not a tty' >&2\nexit 3\n")
    script.chmod(0o755)
    async with playing(places, tmp_path) as world:
        done = (await world.call_within(600_000, str(script), ALLOWED_COMMANDS="*")).structured
        assert isinstance(done, Mapping) and done["exit_code"] == 3


async def test_what_a_program_printed_is_held_once(places: Places, tmp_path: Path) -> None:
    async with playing(places, tmp_path) as world:
        heard = bytearray()
        started = await world.service.runner.start(
            ["seq", "1", "20000"], cwd=str(tmp_path), env={}, on_output=lambda stream, data: heard.extend(data)
        )
        assert isinstance(started, HeadlessRun)
        try:
            assert await started.wait(60_000)
            assert heard.endswith(b"\n20000\n")
            assert (started.stdout.kept_bytes, started.stdout.end) == (0, len(heard))
        finally:
            await started.aclose()
