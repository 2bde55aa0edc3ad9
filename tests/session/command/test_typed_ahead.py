"""A run that comes right after somebody's line is answered with its own output, never with that line's.

While what somebody started runs and reads nothing, a run waits for it, with nothing typed.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.session.running import run_with_registry
from tests.support.session.shells import AGENT, each_shell, make_home, open_shell, text_of, with_shell
from tests.support.waiting import until
from wsh.session.command.turn import count_unread
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.caller import Actor
from wsh.wire.error import WaitTimeout
from wsh.wire.system.place import Places

OTHER = Actor("agent", "other")
LINES = (b"seq 1 30\r", b"sleep 0.02\r", b"true\r")


def make_gate(root: Path) -> Path:
    """A pipe that keeps its reader busy until somebody writes to it."""
    gate = root / "gate"
    os.mkfifo(gate)
    return gate


async def occupy(session: Session, command: str) -> None:
    """Somebody else starts a program that prints `busy` and then reads nothing from the terminal."""
    await session.input.send(command.encode() + b"\r", OTHER)
    await session.wait(WaitSpec(regex=r"(?m)^busy", generation=0, max_wait_ms=60_000))
    await session.wait(WaitSpec(quiet_ms=50, max_wait_ms=60_000))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
def test_a_run_waits_for_the_program_in_front_and_is_told_exactly(places: Places, shell: str) -> None:
    gate = make_gate(places.state.parent)

    async def work(session: Session) -> None:
        await session.wait(WaitSpec(quiet_ms=100, max_wait_ms=60_000))
        await occupy(session, f"echo bus''y; cat {gate}; sh -c 'exit 3'")
        typed = session.input.last
        running = asyncio.ensure_future(session.run_command("echo ow''n", AGENT, timeout_ms=20, max_wait_ms=120_000))
        await until(lambda: session.input.run_waits == (AGENT, "echo ow''n"), "nobody is told that the run waits")
        await session.wait(WaitSpec(quiet_ms=300, max_wait_ms=60_000))
        assert not running.done() and session.input.last == typed, (
            "something was typed into a program that reads nothing"
        )
        await asyncio.to_thread(gate.write_text, "")
        done = await running
        assert session.input.run_waits is None and "own" in text_of(done).splitlines()
        if shell != "sh":
            assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 0, "own")

    with_shell(places, shell, work)


@each_shell
def test_a_run_that_cannot_begin_says_so_and_types_nothing(places: Places, shell: str) -> None:
    gate = make_gate(places.state.parent)

    async def work(session: Session) -> None:
        await occupy(session, f"echo bus''y; cat {gate}")
        with pytest.raises(WaitTimeout, match="nothing was typed") as caught:
            await session.run_command("echo lost", AGENT, timeout_ms=20, max_wait_ms=300)
        facts = caught.value.facts
        assert facts["busy"] is True and facts["foreground"]["argv"] == ["cat", str(gate)]
        assert "input_generation" not in facts and session.input.run_waits is None
        await asyncio.to_thread(gate.write_text, "")
        await until(lambda: session.at_prompt == "yes", "no prompt came")
        assert text_of(await session.run_command("echo own", AGENT, max_wait_ms=60_000)) == "own"
        assert all("lost" not in command.command for command in session.history.list_commands())

    with_shell(places, shell, work)


def test_a_program_that_begins_to_read_gets_the_line_and_ctrl_c_waits_for_nobody(places: Places) -> None:
    gate = make_gate(places.state.parent)

    async def work(session: Session) -> None:
        await occupy(session, f"echo bus''y; sh -c 'cat {gate}; read x; echo got $x; exec cat {gate}'")
        running = asyncio.ensure_future(session.run_command("answer", AGENT, timeout_ms=200, max_wait_ms=60_000))
        await until(lambda: session.input.run_waits is not None, "the run does not wait")
        await asyncio.to_thread(gate.write_text, "")
        await session.wait(WaitSpec(text="got answer", generation=0, max_wait_ms=60_000))
        assert "got answer" in text_of(await running)
        ended = await session.run_command("\x03", AGENT, enter=True, timeout_ms=60_000, max_wait_ms=60_000)
        assert ended.finished_by == "command" and ended.exit_code == 130

    with_shell(places, "bash", work)


async def run_after(session: Session, line: bytes, number: int) -> str:
    await session.input.send(line, OTHER)
    ran = await session.run_command(f"echo own-{number}", AGENT, timeout_ms=3000, max_wait_ms=60_000)
    assert ran.finished_by == "command"
    return text_of(ran)


@each_shell
def test_a_line_typed_while_the_shell_starts_is_not_taken_for_the_run(places: Places, shell: str) -> None:
    async def work(registry: SessionRegistry) -> None:
        home = make_home(places.state.parent)
        for number in range(6):
            session = await open_shell(registry, shell, home)
            assert await run_after(session, LINES[number % 3], number) == f"own-{number}"
            await registry.destroy(session)

    run_with_registry(places, work)


@each_shell
def test_a_line_that_runs_or_has_just_ended_is_not_taken_for_the_run(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        for number in range(12):
            # The kernel shows the run's line where it stands in the output of the other, if that still runs.
            assert (await run_after(session, LINES[number % 3], number)).splitlines()[-1] == f"own-{number}"

    with_shell(places, shell, work)


def test_what_was_typed_counts_as_unread_at_once(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="sh -c 'stty raw -echo; echo raw; exec sleep 3600'"))
        await session.wait(WaitSpec(text="raw", generation=0, max_wait_ms=60_000))
        with open(f"/proc/{session.pid}/fd/0", "rb", buffering=0) as terminal:  # noqa: ASYNC230 - it never blocks
            for _ in range(100):
                await session.input.send(b"x", OTHER)
                assert count_unread(session) == 1
                terminal.read(1)

    run_with_registry(places, work)
