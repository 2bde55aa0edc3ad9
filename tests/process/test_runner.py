"""Headless commands: output, limits, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until
from wsh.process import KeeperClient, RunResult, start
from wsh.process import run as execute
from wsh.process.keeper.tree.mark import is_alive
from wsh.wire.error import ProgramNotFound, SessionCreateFailed

ENV = {"PATH": os.environ["PATH"]}


async def sh(keeper: KeeperClient, script: str, **more: Any) -> RunResult:
    return await execute(keeper, ["sh", "-c", script], cwd="/", env=ENV, **more)


async def test_a_command_gives_its_streams_apart_and_its_exit_code(keeper: KeeperClient) -> None:
    result = await sh(keeper, "echo out; echo err >&2; exit 4")
    assert (result.stdout, result.stderr, result.exit_code, result.signal) == (b"out\n", b"err\n", 4, None)
    assert not result.timed_out and result.stdout_dropped == 0
    assert keeper.children == {} and (await keeper.ping())["children"] == 0


async def test_a_command_reads_what_it_is_given_and_otherwise_end_of_file(keeper: KeeperClient) -> None:
    assert (await sh(keeper, "cat")).stdout == b""
    text = os.urandom(300_000).hex().encode()
    assert (await sh(keeper, "cat", stdin=text)).stdout == text
    assert (await sh(keeper, "head -c 1", stdin=text)).stdout == text[:1]


async def test_output_beyond_the_limit_is_dropped_from_its_front_and_counted(keeper: KeeperClient) -> None:
    result = await sh(keeper, "seq 1000000; echo end", max_output_bytes=10_000)
    assert len(result.stdout) == 10_000 and result.stdout.endswith(b"1000000\nend\n")
    assert result.stdout_dropped == 6_888_896 + 4 - 10_000


async def test_a_deadline_kills_the_whole_tree_before_the_result_comes(keeper: KeeperClient) -> None:
    script = "trap '' TERM HUP; setsid sleep 300 & echo $!; (sleep 301 & echo $!); sleep 302"
    result = await sh(keeper, script, timeout_ms=300, grace_ms=100)
    assert result.timed_out and result.signal == "SIGKILL"
    pids = [int(line) for line in result.stdout.split()]
    assert len(pids) == 2 and not any(is_alive(pid) for pid in pids)
    assert result.duration_ms < 60_000


async def test_a_cancelled_caller_leaves_no_process(keeper: KeeperClient, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    task = asyncio.ensure_future(sh(keeper, f"setsid sleep 300 & echo $! > {note}.new; mv {note}.new {note}; wait"))
    await until(note.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(int(note.read_text()))
    assert (await keeper.ping())["children"] == 0


async def test_a_caller_cancelled_while_the_command_is_being_started_leaves_nothing(keeper: KeeperClient) -> None:
    task = asyncio.ensure_future(sh(keeper, "sleep 300"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert keeper.children == {} and (await keeper.ping())["children"] == 0


async def test_what_a_finished_command_left_in_the_background_lives_on(keeper: KeeperClient) -> None:
    script = "(while sleep 0.01; do echo tick; done) & echo $!"
    result = await sh(keeper, script)
    (pid,) = (int(word) for word in result.stdout.split() if word != b"tick")  # some may come before the number
    await asyncio.sleep(0.2)
    assert is_alive(pid)


async def test_output_can_be_read_while_the_command_runs(keeper: KeeperClient) -> None:
    heard: list[tuple[str, bytes]] = []
    started = await start(
        keeper,
        ["sh", "-c", "echo one; read x; echo two >&2; sleep 300"],
        cwd="/",
        env=ENV,
        stdin=b"go\n",
        on_output=lambda name, data: heard.append((name, data)),
    )
    await until(lambda: started.stderr.end == 4)
    assert heard == [("stdout", b"one\n"), ("stderr", b"two\n")]
    assert started.running and not await started.wait(10)
    assert started.stdout.read(2).data == b"e\n"
    report = await started.kill()
    assert report.survivors == () and started.result.signal in {"SIGTERM", "SIGHUP"}
    await started.aclose()
    await started.aclose()
    assert started.result.stdout == b"one\n"


async def test_only_the_file_that_was_decided_on_is_executed(keeper: KeeperClient, tmp_path: Path) -> None:
    async def sh_identity(keeper: KeeperClient, path: str, identity: tuple[int, int]) -> RunResult:
        return await execute(keeper, [path, "x"], cwd="/", env=ENV, path=path, identity=identity)

    for content in ("#!/bin/sh\necho script\n", None):
        program = tmp_path / "program"
        if content is None:
            shutil.copy("/bin/echo", program)
        else:
            program.write_text(content)
        program.chmod(0o755)
        found = program.stat()
        result = await sh_identity(keeper, str(program), (found.st_dev, found.st_ino))
        assert result.exit_code == 0
        other = tmp_path / "other"
        other.write_text("#!/bin/sh\necho evil\n")
        other.chmod(0o755)
        other.rename(program)
        with pytest.raises(SessionCreateFailed, match="cannot be started"):
            await sh_identity(keeper, str(program), (found.st_dev, found.st_ino))


async def test_a_folder_given_as_a_descriptor_is_entered_even_if_its_name_moved(
    keeper: KeeperClient, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    fd = os.open(folder, os.O_RDONLY)
    folder.rename(tmp_path / "moved")
    try:
        result = await execute(keeper, ["pwd", "-P"], cwd=str(folder), env=ENV, cwd_fd=fd)
    finally:
        os.close(fd)
    assert result.stdout.decode().strip() == str(tmp_path / "moved")


async def test_a_program_that_is_not_there_is_an_error_of_its_own(keeper: KeeperClient) -> None:
    with pytest.raises(ProgramNotFound):
        await execute(keeper, ["nope-nope"], cwd="/", env=ENV)
