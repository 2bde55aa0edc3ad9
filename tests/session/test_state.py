"""What a session waits for, and what is never written down."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.session.running import plain, run_with_registry, settings_of
from tests.support.session.running import run as run_loop
from tests.support.session.shells import AGENT, each_shell, make_home, open_shell, run, run_to_end, text_of, with_shell
from wsh.process import ChildHandle, ProcessState
from wsh.session.event import SessionEvent
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.state import is_hidden_now, shell_name
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import WaitTimeout
from wsh.wire.system.place import Places

SECRET = "tr0ub4dor-and-3"
ASK = "import getpass; p = getpass.getpass('[sudo] password for me: '); print('length', len(p))"


@each_shell
def test_each_question_is_answered_from_the_kernel(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await session.wait(WaitSpec(prompt=True, max_wait_ms=60_000))
        for _ in range(200):  # fish looks at its history for a while before it sits down to wait
            state = await session.look()
            if state.input_wanted == "yes":
                break
            await asyncio.sleep(0.05)
        assert (state.at_prompt, state.hidden_prompt, state.alt_screen) == ("yes", "no", "no")
        assert (state.input_wanted, state.integration, state.command_id) == ("yes", "active", None)
        assert state.foreground is not None and state.foreground.comm == shell

        await run(session, "cat", timeout_ms=100)
        state = await session.look()
        assert (state.at_prompt, state.input_wanted, state.hidden_prompt) == ("no", "yes", "no")
        assert state.foreground is not None and state.foreground.argv == ("cat",) and state.command_id == 2
        await session.input.send(b"\x04", AGENT)
        await session.wait(WaitSpec(prompt=True, max_wait_ms=60_000))

        await run(session, f'python3 -c "{ASK}"', timeout_ms=200)
        state = await session.look()
        assert (state.at_prompt, state.hidden_prompt) == ("no", "yes")
        assert is_hidden_now(session)
        done = await run_to_end(session, "1234")
        assert done.finished_by == "command" and "length 4" in text_of(done)
        assert not is_hidden_now(session)

        await run(session, "vim -u NONE -i NONE -n")
        state = await session.look()
        assert (state.alt_screen, state.at_prompt, state.hidden_prompt) == ("yes", "no", "no")
        await run(session, ":q")
        await run(session, "sleep 30 &")
        assert [job.argv for job in (await session.look()).jobs] == [("sleep", "30")]

    with_shell(places, shell, work)


def test_a_reader_at_the_end_of_a_pipeline_is_found(places: Places) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, "sleep 20 | sh -c 'read a </dev/tty; echo got $a; kill $PPID 2>/dev/null'")
        assert outcome.finished_by == "prompt"
        assert (await session.look()).input_wanted == "yes"

    with_shell(places, "bash", work)


def test_a_program_that_has_not_been_given_the_last_input_does_not_wait_for_input(places: Places) -> None:
    """On a busy machine the kernel takes a while to hand a typed line over; until then its reader sleeps as if nothing had been typed."""

    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="echo re''ady; read gate < gate; cat", cwd=str(root)))
        await session.wait(WaitSpec(text="ready", generation=0, max_wait_ms=60_000))
        ask = registry.keeper.inspect

        async def as_before(child: ChildHandle, *, jobs: bool = False) -> ProcessState:
            return replace(await ask(child, jobs=jobs), reading="yes", plain_read=True)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry.keeper, "inspect", as_before)
            assert (await session.inspect()).reading == "yes"
            with pytest.raises(WaitTimeout):
                await session.run_command("typed", AGENT, timeout_ms=10, max_wait_ms=500)
            assert (await session.inspect()).reading == "no"
            assert (await session.look()).input_wanted == "no"
        await asyncio.to_thread((root / "gate").write_text, "\n")
        await session.wait(WaitSpec(input_wanted=True, max_wait_ms=60_000))
        assert plain(session)[:3] == ["ready", "typed", "typed"]

    root = places.state.parent
    os.mkfifo(root / "gate")
    run_with_registry(places, work)


def test_nothing_is_asked_of_an_exited_session(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "exit 3")
        state = await session.look()
        assert (state.running, state.at_prompt, state.input_wanted, state.hidden_prompt) == (False, "no", "no", "no")
        assert state.to_wire()["foreground"] is None

    with_shell(places, "bash", work)


def test_a_secret_typed_at_a_hidden_prompt_is_written_nowhere(places: Places, caplog: pytest.LogCaptureFixture) -> None:
    home = make_home(places.state.parent)
    heard: list[str] = []

    async def body() -> None:
        registry = await SessionRegistry.open(places, settings_of())
        caplog.set_level(logging.DEBUG)
        for shell in ("bash", "zsh", "fish"):
            session = await open_shell(registry, shell, home)

            def hear(event: SessionEvent) -> None:
                heard.append(repr(event))

            session.listeners.add(hear)
            asks = [f'python3 -c "{ASK}"', "read -s word"]
            if shell == "bash":
                asks += [
                    "read -sn 15 word",
                    "stty -echo; read word; stty echo",
                    "sh -c 'stty -echo -icanon; head -c16 >/dev/null; stty sane'",
                ]
            for ask in asks:
                asked = await run(session, ask, timeout_ms=200)
                assert asked.finished_by == "prompt", (shell, ask, asked)
                assert (await session.look()).hidden_prompt != "no", (shell, ask)
                if ask == "read -s word":
                    await session.input.send(SECRET.encode() + b"\r", AGENT)
                    await session.wait(WaitSpec(prompt=True, max_wait_ms=60_000))
                else:
                    done = await run(session, SECRET)
                    assert done.finished_by in ("command", "prompt"), (shell, ask, done)
                    heard.append(repr(done))
                heard.append(repr(session.history.list_commands()))
            assert (await run(session, "true")).exit_code == 0
        await registry.aclose()

    async def stop() -> None:
        await (await SessionRegistry.open(places, settings_of())).stop()

    try:
        run_loop(body())
        written = [path for path in Path(places.state.parent.parent).rglob("*") if path.is_file()]
        assert any("journal" in path.name for path in written)
        leaks = [path for path in written if SECRET.encode() in path.read_bytes()]
        assert leaks == []
    finally:
        run_loop(stop())
    assert SECRET not in "\n".join(heard) and SECRET not in caplog.text


@pytest.mark.parametrize(
    ("comm", "shell"),
    [
        ("bash", "bash"),
        ("-bash", "bash"),
        ("zsh-5.9", "zsh"),
        ("zsh5", "zsh"),
        ("rbash", "rbash"),
        ("ssh", ""),
        ("vim", ""),
        ("", ""),
    ],
)
def test_a_shell_is_known_by_its_name(comm: str, shell: str) -> None:
    assert shell_name(comm) == shell
