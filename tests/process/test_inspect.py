"""What the keeper knows of a child from the kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.process.keeper import said, shell
from tests.support.waiting import until
from wsh.process import ChildHandle, KeeperClient, ProcessState, SpawnSpec

ENV = {"PATH": os.environ["PATH"], "TERM": "xterm", "PS1": "ready> "}


async def inspect_until(
    keeper: KeeperClient, child: ChildHandle, wanted: Callable[[ProcessState], bool], *, jobs: bool = False
) -> ProcessState:
    async def look() -> ProcessState | None:
        states.append(await keeper.inspect(child, jobs=jobs))
        return states[-1] if wanted(states[-1]) else None

    states: list[ProcessState] = []
    await until(look, "the wanted state", seen=lambda: states[-1])
    return states[-1]


@pytest.mark.parametrize(
    "argv",
    [
        ["cat"],
        ["bash", "--norc", "-i"],
        [sys.executable, "-c", "input('ready> ')"],
        [sys.executable, "-c", "import select; print('ready'); select.select([0], [], [])"],
        [sys.executable, "-c", "import select; p = select.poll(); p.register(0, 1); p.poll()"],
        [sys.executable, "-c", "import select; p = select.epoll(); p.register(0, 1); p.poll()"],
        ["sh", "-c", "read x"],
    ],
    ids=["cat", "bash", "input", "select", "poll", "epoll", "read"],
)
async def test_a_program_that_waits_for_a_key_is_known_to(keeper: KeeperClient, argv: list[str]) -> None:
    child = await keeper.spawn(SpawnSpec(argv, "/", ENV))
    state = await inspect_until(keeper, child, lambda state: state.reading == "yes")
    assert state.reading == "yes"
    assert state.foreground is not None and state.foreground.pid == child.pid
    assert state.foreground_group == child.pid


@pytest.mark.torture
@pytest.mark.parametrize("script", ["while :; do /bin/true; done", "set -m; while :; do /bin/true; done"])
async def test_a_program_that_ends_while_it_is_looked_at_reads_nothing(
    keeper: KeeperClient, script: str, torture: bool
) -> None:
    """Short programs in the shell's own group, and each in a group of its own."""
    child = await keeper.spawn(SpawnSpec(["bash", "-c", f"echo begun; {script}"], "/", ENV))
    await said(child, b"begun")
    for _ in range(1500 if torture else 400):
        assert (await keeper.inspect(child)).reading == "no"


@pytest.mark.parametrize(
    ("script", "reading"),
    [
        ("exec sleep 300", "no"),
        ("while :; do :; done", "no"),
        ("exec sleep 300 < /dev/null", "no"),
        (f"exec {sys.executable} -c 'import select; select.select([0], [], [], 300)'", "unknown"),
    ],
)
async def test_a_program_that_does_something_else_is_not_said_to_wait(
    keeper: KeeperClient, script: str, reading: str
) -> None:
    child = await keeper.spawn(shell(script))
    state = await inspect_until(keeper, child, lambda state: state.reading == reading)
    assert state.reading == reading


async def test_the_foreground_program_its_folder_and_the_jobs_behind_it_are_named(
    keeper: KeeperClient, tmp_path: Path
) -> None:
    child = await keeper.spawn(SpawnSpec(["bash", "--norc", "-i"], "/", ENV))
    await said(child, b"ready>")
    await child.write_all(f"cd {tmp_path}; sleep 301 & sleep 302\n".encode())
    state = await inspect_until(  # both have been executed: until then they go by the shell's name
        keeper,
        child,
        lambda s: s.foreground is not None and [p.comm for p in (s.foreground, *s.jobs)] == ["sleep", "sleep"],
        jobs=True,
    )
    assert state.foreground is not None and state.foreground.argv == ("sleep", "302")
    assert state.foreground_group == state.foreground.pid != child.pid
    assert state.cwd == str(tmp_path)
    assert [job.argv for job in state.jobs] == [("sleep", "301")]
    assert state.reading == "no"


async def test_a_hidden_prompt_is_told_from_a_line_editor(keeper: KeeperClient) -> None:
    prompt = await keeper.spawn(shell("stty -echo; echo ready; read x; stty echo; exec sleep 300"))
    await said(prompt, b"ready")
    state = await inspect_until(keeper, prompt, lambda state: state.reading == "yes")
    assert (state.echo, state.canonical, state.hidden_prompt) == (False, True, True)
    await prompt.write_all(b"secret\n")
    state = await inspect_until(keeper, prompt, lambda state: state.echo is True)
    assert not state.hidden_prompt and b"secret" not in prompt.ring.peek()
    editor = await keeper.spawn(SpawnSpec(["bash", "--norc", "-i"], "/", ENV))
    await said(editor, b"ready>")
    state = await inspect_until(keeper, editor, lambda state: state.reading == "yes")
    assert (state.echo, state.canonical, state.hidden_prompt) == (False, False, False)


async def test_a_child_that_has_ended_is_not_running(keeper: KeeperClient) -> None:
    child = await keeper.spawn(shell("exit 0"))
    await child.exited
    assert await keeper.inspect(child) == ProcessState(running=False)


async def test_asking_costs_little(keeper: KeeperClient) -> None:
    child = await keeper.spawn(SpawnSpec(["cat"], "/", ENV))
    await inspect_until(keeper, child, lambda state: state.reading == "yes")
    before = psutil.Process(keeper.pid).cpu_times()
    for _ in range(200):
        await keeper.inspect(child)
    after = psutil.Process(keeper.pid).cpu_times()
    spent = sum(after[:2]) - sum(before[:2])
    assert spent < 200 * 0.01, f"{spent} s of the keeper's processor for 200 answers"
