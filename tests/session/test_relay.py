"""Who waits for input behind programs that pass the terminal on, and in sessions of their own."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.session.shells import AGENT, run, run_to_end, with_shell
from tests.support.waiting import until
from wsh.session.command import turn
from wsh.session.record.playback import read_output
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import LineInUse
from wsh.wire.system.place import Places

RELAYS = {
    "script": "script -q -c 'bash --norc' /dev/null",
    "sudo": "sudo -n bash --norc",
    "sudo -i": "sudo -n -i",
}


def needs(program: str) -> None:
    if shutil.which(program) is None or (program in ("sudo", "su") and os.geteuid() != 0):
        pytest.skip(f"{program} cannot be used here")


async def seen(session: Session) -> str:
    return (await session.look(jobs=False)).input_wanted


@pytest.mark.parametrize("relay", RELAYS)
def test_a_relay_is_looked_through(places: Places, relay: str, tmp_path: Path) -> None:
    needs(relay.split()[0])
    go_on = tmp_path / "go on"

    async def work(session: Session) -> None:
        await run(session, "true")
        started = await run(session, RELAYS[relay], timeout_ms=500)
        assert started.finished_by == "prompt"
        sleeping = (
            f"echo as''leep; until [ -e {shlex.quote(str(go_on))} ]; do sleep 0.1; done; echo awa''ke; read answer\r"
        )
        await session.input.send(sleeping.encode(), AGENT)
        await session.wait(WaitSpec(text="asleep", generation=0, max_wait_ms=60_000))

        async def quiet() -> bool:
            return await seen(session) != "yes"

        await until(quiet, "it seems to read while it sleeps")
        for _ in range(10):
            assert await seen(session) in ("no", "unknown")
        go_on.touch()
        await session.wait(WaitSpec(text="awake", generation=0, max_wait_ms=60_000))

        async def reads() -> bool:
            return await seen(session) == "yes"

        await until(reads, "its question is not seen")
        await session.input.send(b"a\r", AGENT)
        await until(reads, "its prompt is not seen")
        await session.input.send(b"echo half", AGENT)
        with pytest.raises(LineInUse):
            await session.run_command("echo mixed", AGENT, timeout_ms=300)

    with_shell(places, "bash", work)


@pytest.mark.parametrize(
    "command",
    [
        "setsid -w bash -c 'read x'",
        "su nobody -s /bin/bash -c 'read x'",
        "script -q -c 'read x' /dev/null",
        "sudo -n bash -c 'read x'",
    ],
)
def test_a_question_from_another_session_is_seen(places: Places, command: str) -> None:
    needs(command.split()[0])

    async def work(session: Session) -> None:
        await run(session, "true")
        asked = await run(session, command, timeout_ms=300)
        assert asked.finished_by == "prompt"
        assert await seen(session) == "yes"
        done = await run_to_end(session, "answer")
        assert done.finished_by == "command"

    with_shell(places, "bash", work)


@pytest.mark.parametrize(
    "command",
    ["setsid -w sleep 1", "su nobody -s /bin/bash -c 'sleep 1'", "script -q -c 'sleep 1' /dev/null", "sudo -n sleep 1"],
)
def test_a_program_that_asks_nothing_is_not_said_to(places: Places, command: str) -> None:
    needs(command.split()[0])

    async def work(session: Session) -> None:
        await run(session, "true")
        done = await run(session, command, timeout_ms=100)
        assert (done.finished_by, done.exit_code) == ("command", 0)

    with_shell(places, "bash", work)


def test_behind_tmux_nobody_can_tell(places: Places) -> None:
    needs("tmux")
    socket = places.state.parent / "tmux"

    async def work(session: Session) -> None:
        await run(session, f"tmux -S {socket} -f /dev/null new-session 'sleep 60'", timeout_ms=300)

        async def front() -> bool:
            state = await session.look(jobs=False)
            return state.foreground is not None and state.foreground.comm.startswith("tmux")

        await until(front, "tmux did not start")
        assert await seen(session) == "unknown"
        await session.input.send(b"\x03", AGENT)
        await until(lambda: session.at_prompt == "yes", "tmux did not end")

    with_shell(places, "bash", work)


# what a run on the alternate screen prints


def test_leaving_the_alternate_screen_is_no_output(places: Places) -> None:
    needs("less")
    path = places.state.parent / "long"
    path.write_text("".join(f"line {n}\n" for n in range(500)))

    async def work(session: Session) -> None:
        await run(session, "true")
        opened = await run(session, f"LESS= less {path}", timeout_ms=300)
        assert opened.finished_by == "prompt"
        left = await run_to_end(session, "Gq", enter=False)
        assert left.finished_by == "command" and left.output is not None and left.command_id is not None
        whole = await read_output(session, session.history.get_command(left.command_id), 65536)
        assert left.output.text == whole.text == ""
        await run(session, "vim -u NONE -i NONE -n", timeout_ms=300)
        await run(session, "ihello", enter=False, timeout_ms=300)
        left = await run_to_end(session, "\x1b:q!")
        assert left.finished_by == "command" and left.output is not None and "hello" not in left.output.text
        # and where a nested shell tells nothing
        await run(session, "bash --norc", timeout_ms=300)
        await run(session, f"LESS= less {path}", timeout_ms=300)
        left = await run(session, "Gq", enter=False, timeout_ms=300)
        assert left.output is not None and "line 4" not in left.output.text

    with_shell(places, "bash", work, env={"PAGER": "less"})


# a relay is one whatever it does at the moment

BUSY = """#!{python}
import os, pty, sys, tty
{opened}
tty.setraw(0)
os.write(1, b"busy\\r\\n")
while True:
    {step}
"""


@pytest.mark.parametrize(
    ("name", "opened", "step"),
    [
        pytest.param("ssh", "", "pass", id="by name, working"),
        pytest.param("passes", "pty.openpty()", "pass", id="by its inner terminal, working"),
        pytest.param("passes", "pty.openpty()", "os.read(0, 1)", id="by its inner terminal, in a plain read"),
    ],
)
def test_a_line_behind_a_relay_is_in_use_while_the_relay_does_something_else(
    places: Places, name: str, opened: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_ECHO_S", 0.05)  # it never echoes, and works all the while that an echo is waited for
    folder = places.state.parent / "bin"
    folder.mkdir()
    program = folder / name
    program.write_text(BUSY.format(python=sys.executable, opened=opened, step=step))
    program.chmod(0o755)

    async def work(session: Session) -> None:
        await run(session, "true")
        await session.input.send(f"{program}\r".encode(), AGENT)
        await session.wait(WaitSpec(text="busy\n", generation=0, max_wait_ms=60_000))
        await session.input.send(b"echo half", AGENT)
        for _ in range(10):
            with pytest.raises(LineInUse):
                await session.run_command("echo mixed", AGENT, timeout_ms=300)

    with_shell(places, "bash", work)
