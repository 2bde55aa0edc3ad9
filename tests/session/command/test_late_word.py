"""A shell that reads again may not have been heard yet: the keeper had no time to read what it printed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.session.shells import AGENT, each_shell, make_home, text_of, with_shell
from tests.support.waiting import until
from wsh.process import ProcessState
from wsh.process.keeper.tree.inspect import look_for_reader
from wsh.session.command.turn import count_unread
from wsh.session.event import Input, SessionEvent
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.system.place import Places


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def reads(session: Session) -> bool:
    """By the kernel, whatever the keeper does."""
    terminal = os.readlink(f"/proc/{session.pid}/fd/0")
    return look_for_reader([session.pid], terminal)[0] not in ("no", "unknown")


def has_begun(session: Session) -> bool:
    """By the shell's own word: between a command and its prompt it is at no prompt either."""
    return session.commands is not None and session.commands.current is not None


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def end_unheard(session: Session, gate: Path) -> None:
    """The command ends and the shell reads while the keeper is stopped; the next look is answered with just that."""
    at_prompt = await session.inspect()
    while at_prompt.reading != "no":  # `cat` is in front now
        await asyncio.sleep(0.02)
        at_prompt = await session.inspect()
    ask, looks, armed = session.inspect, 0, asyncio.Event()

    async def inspect(*, jobs: bool = False) -> ProcessState:
        nonlocal looks
        await armed.wait()
        looks += 1
        if looks == 1:
            return replace(at_prompt, reading="yes", foreground=None)
        return await ask(jobs=jobs)

    session.inspect = inspect  # type: ignore[method-assign]  # the keeper's answer of that moment
    await ask()  # and with it those to earlier looks
    with stopped(parent(session.pid)):
        await asyncio.to_thread(gate.write_text, "")
        await until(lambda: reads(session), "the shell does not read")
        armed.set()
        await until(lambda: looks > 0, "nobody looks")
        await asyncio.sleep(0.1)
    await until(lambda: session.at_prompt == "yes", "no prompt came")
    session.inspect = ask  # type: ignore[method-assign]


@each_shell
@pytest.mark.parametrize("several", [False, True])
def test_a_run_hears_the_end_of_its_command_before_it_ends(
    places: Places, shell: str, gate: Path, several: bool
) -> None:
    text = f"cat {gate}{chr(10) if several else '; '}sleep 0.2; echo second; sh -c 'exit 3'"

    async def work(session: Session) -> None:
        await session.run_command("true", AGENT, max_wait_ms=60_000)
        running = asyncio.ensure_future(session.run_command(text, AGENT, timeout_ms=30, max_wait_ms=60_000))
        await until(lambda: has_begun(session), "the command does not begin")
        await end_unheard(session, gate)
        done = await running
        assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 3, "second")

    with_shell(places, shell, work)


@each_shell
def test_a_run_that_waits_for_a_command_hears_its_end_before_it_types(places: Places, shell: str, gate: Path) -> None:
    async def work(session: Session) -> None:
        await session.run_command("true", AGENT, max_wait_ms=60_000)
        await session.input.send(f"cat {gate}; sh -c 'exit 3'\r".encode(), AGENT)
        await until(lambda: has_begun(session), "the command does not begin")
        typed_at: list[str] = []
        stop = session.listeners.add(
            lambda event: typed_at.append(session.at_prompt) if isinstance(event, Input) else None
        )
        running = asyncio.ensure_future(session.run_command("echo own; sh -c 'exit 5'", AGENT, max_wait_ms=60_000))
        await end_unheard(session, gate)
        done = await running
        stop()
        assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 5, "own")
        assert "no" not in typed_at, "typed while the command before counted as running"

    with_shell(places, shell, work)


@each_shell
def test_a_prompt_that_comes_late_is_not_taken_for_the_end_of_a_line(places: Places, shell: str) -> None:
    slow = {
        "bashrc": "PROMPT_COMMAND='sleep 0.6'",
        "zshrc": "precmd() { sleep 0.6 }",
        "config__fish__config.fish": "function fish_prompt; sleep 0.6; echo '> '; end",
    }
    home = make_home(places.state.parent, **slow)

    async def work(session: Session) -> None:
        for number in range(3):
            text = f"true\nsh -c 'exit 1'\nsleep 0.2; echo {number}; sh -c 'exit 3'"
            done = await session.run_command(text, AGENT, max_wait_ms=60_000)
            assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 3, str(number))

    with_shell(places, shell, work, home)


@each_shell
def test_the_next_line_waits_until_the_shell_has_taken_the_one_before(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await session.run_command("true", AGENT, max_wait_ms=60_000)
        at_prompt = await session.inspect()
        ask, looks, armed = session.inspect, 0, False

        async def inspect(*, jobs: bool = False) -> ProcessState:
            nonlocal looks
            looks += armed
            is_untaken = armed and looks == 1 and bool(count_unread(session))
            return replace(at_prompt, reading="yes") if is_untaken else await ask(jobs=jobs)

        def hear(event: SessionEvent) -> None:
            nonlocal armed
            if isinstance(event, Input) and not armed:
                os.kill(session.pid, signal.SIGSTOP)  # it had no time to read
                armed = True

        stop = session.listeners.add(hear)
        session.inspect = inspect  # type: ignore[method-assign]  # the keeper's answer of that moment
        text = "sleep 0.2; sh -c 'exit 1'\nsleep 0.2; echo second; sh -c 'exit 3'"
        running = asyncio.ensure_future(session.run_command(text, AGENT, max_wait_ms=60_000))
        try:
            await until(lambda: looks > 0, "nobody looks")
            await asyncio.sleep(0.1)
        finally:
            stop()
            session.inspect = ask  # type: ignore[method-assign]
            os.kill(session.pid, signal.SIGCONT)
        done = await running
        assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 3, "second")

    with_shell(places, shell, work)


@each_shell
def test_a_wait_for_the_end_or_a_question_names_the_end(places: Places, shell: str, gate: Path) -> None:
    async def work(session: Session) -> None:
        await session.run_command("true", AGENT, max_wait_ms=60_000)
        await session.input.send(f"cat {gate}\r".encode(), AGENT)
        await until(lambda: has_begun(session), "the command does not begin")
        waiting = asyncio.ensure_future(session.wait(WaitSpec(command=True, input_wanted=True, max_wait_ms=60_000)))
        await end_unheard(session, gate)
        assert (await waiting).ended_by == "command"

    with_shell(places, shell, work)
