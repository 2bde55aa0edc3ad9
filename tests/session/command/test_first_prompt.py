"""A run into a shell whose startup files take long waits for the first prompt; it never types into them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.support.session.shells import AGENT, each_shell, make_home, run, text_of, with_shell
from tests.support.waiting import until
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import WaitTimeout
from wsh.wire.system.place import Places


def make_slow_home(root: Path) -> tuple[str, Path]:
    """A home whose startup files wait until somebody opens the named pipe."""
    gate = root / "gate"
    os.mkfifo(gate)
    wait = f"echo slow; cat {gate}\n"
    return make_home(root, bashrc=wait, zshrc=wait, **{"config__fish__config.fish": wait}), gate


def open_gate(gate: Path) -> None:
    gate.write_text("")


@each_shell
def test_a_run_waits_for_the_first_prompt_and_is_told_exactly(places: Places, shell: str) -> None:
    home, gate = make_slow_home(places.state.parent)

    async def work(session: Session) -> None:
        running = asyncio.ensure_future(run(session, "echo done; sh -c 'exit 3'", max_wait_ms=120_000, timeout_ms=100))
        await session.wait(WaitSpec(text="slow", generation=0, max_wait_ms=60_000))
        await session.wait(WaitSpec(quiet_ms=200, max_wait_ms=60_000))
        assert not running.done() and session.input.last is None, "something was typed into a startup file"
        await asyncio.to_thread(open_gate, gate)
        done = await running
        assert (done.finished_by, done.exit_code, text_of(done)) == ("command", 3, "done")

    with_shell(places, shell, work, home, session__first_prompt_ms=120_000)


@each_shell
def test_a_shell_that_does_not_come_up_is_given_up_with_nothing_typed(places: Places, shell: str) -> None:
    home, gate = make_slow_home(places.state.parent)

    async def work(session: Session) -> None:
        await session.wait(WaitSpec(text="slow", generation=0, max_wait_ms=60_000))
        with pytest.raises(WaitTimeout) as caught:
            await session.run_command("echo lost", AGENT, timeout_ms=20, max_wait_ms=60_000)
        assert "first prompt" in str(caught.value) and caught.value.facts["screen"]["lines"][0] == "slow"
        assert session.input.last is None
        await asyncio.to_thread(open_gate, gate)
        await until(lambda: session.at_prompt == "yes", "no prompt came")
        assert text_of(await run(session, "echo done")) == "done"
        assert [command.command for command in session.history.list_commands()] == ["echo done"]

    with_shell(places, shell, work, home, session__first_prompt_ms=200)


def test_a_startup_file_that_asks_is_answered(places: Places) -> None:
    home = make_home(places.state.parent, bashrc="read -p 'Which? ' which\n")

    async def work(session: Session) -> None:
        asked = await run(session, "this", timeout_ms=100)
        assert asked.finished_by in ("prompt", "quiet", "command")
        await until(lambda: session.at_prompt == "yes", "no prompt came")
        assert text_of(await run(session, "echo $which")) == "this"

    with_shell(places, "bash", work, home)


def test_a_startup_file_that_goes_elsewhere_is_not_waited_for(places: Places) -> None:
    """No prompt of the session's own shell is to come where that shell has become ssh."""
    relay = places.state.parent / "ssh"
    relay.write_text(f"#!{sys.executable}\nimport pty\npty.spawn(['sh', '-c', 'echo up; exec sleep 600'])\n")
    relay.chmod(0o755)
    home = make_home(places.state.parent, bashrc=f"exec {relay}\n")

    async def work(session: Session) -> None:
        await session.wait(WaitSpec(text="up", generation=0, max_wait_ms=60_000))
        done = await run(session, "echo there", timeout_ms=100)
        assert done.finished_by == "quiet" and "there" in text_of(done)

    with_shell(places, "bash", work, home, session__first_prompt_ms=10_000)
