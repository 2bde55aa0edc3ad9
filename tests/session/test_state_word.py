"""One word for what a session does: the same for real programs in real shells as for the table of cases."""

from __future__ import annotations

import shutil

import pytest

from tests.support.session.shells import AGENT, each_shell, run, with_shell
from tests.support.waiting import until
from wsh.process import ProcessInfo
from wsh.session.session import Session
from wsh.session.state_word import is_interactive, name_state, program_name
from wsh.wire.system.place import Places


async def reach(session: Session, word: str, program: str = "") -> None:
    """Wait for the word, with that program in the foreground."""
    seen: list[object] = []

    async def there() -> bool:
        state = await session.look(jobs=False)
        seen[:] = [state]
        front = state.foreground.comm if state.foreground is not None else ""
        return state.state == word and front.startswith(program)

    await until(there, f"the state {word}", seen=lambda: seen)


@each_shell
def test_a_shell_is_idle_a_question_asks_and_an_editor_is_open(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        await reach(session, "idle")
        await session.input.send(b"sleep 100\r", AGENT)
        await reach(session, "running", "sleep")
        await session.input.send(b"\x03", AGENT)
        await reach(session, "idle")
        await session.input.send(b"sh -c 'printf \"go on? [y/N] \"; read answer'\r", AGENT)
        await reach(session, "asks")
        await session.input.send(b"y\r", AGENT)
        await reach(session, "idle")
        await session.input.send(b"sh -c 'stty -echo; printf \"password: \"; read answer; stty echo'\r", AGENT)
        await reach(session, "hidden")
        await session.input.send(b"y\r", AGENT)
        await reach(session, "idle")
        await session.input.send(b"vim -u NONE -i NONE -n\r", AGENT)
        await reach(session, "open")
        await session.input.send(b":q\r", AGENT)
        await reach(session, "idle")

    with_shell(places, shell, work)


def test_a_question_of_the_shell_itself_asks(places: Places) -> None:
    async def work(session: Session) -> None:
        await reach(session, "idle")
        for question in (b"read -p 'sure? [y/N] ' a\r", b"read -n 1 -p 'sure? [y/N] ' a\r"):
            await session.input.send(question, AGENT)
            await reach(session, "asks")
            await session.input.send(b"y\r", AGENT)
            await reach(session, "idle")

    with_shell(places, "bash", work)


def test_a_shell_without_marks_is_idle_and_its_question_asks(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "exec sh" if shutil.which("dash") is None else "dash", timeout_ms=100)
        await reach(session, "idle")
        await session.input.send(b"bash --norc -c 'read -p \"sure? [y/N] \" a'\r", AGENT)
        await reach(session, "asks")
        await session.input.send(b"y\r", AGENT)
        await reach(session, "idle")

    with_shell(places, "bash", work)


def test_a_program_that_has_ended_is_exited(places: Places) -> None:
    async def work(session: Session) -> None:
        await session.input.send(b"exit 3\r", AGENT)
        await reach(session, "exited")

    with_shell(places, "bash", work)


@pytest.mark.parametrize(
    ("argv", "interactive"),
    [
        (["bash"], True),
        (["-bash"], True),
        (["bash", "--rcfile", "file", "-i"], True),
        (["fish", "-C", "source x"], True),
        (["bash", "-lc", "read a"], False),
        (["bash", "script.sh"], False),
        (["sh", "-e", "script.sh"], False),
        (["sh", "--", "script.sh"], False),
    ],
)
def test_a_shell_with_a_script_is_not_interactive(argv: list[str], interactive: bool) -> None:
    assert is_interactive(argv) is interactive


@pytest.mark.parametrize(
    ("argv", "full_screen", "waits", "word"),
    [
        (["less", "-X", "file"], False, True, "open"),
        (["less", "file"], True, False, "open"),
        (["whiptail", "--yesno", "sure"], True, True, "asks"),
        (["python3"], False, True, "open"),
        (["/usr/bin/python3.11"], False, True, "open"),
        (["python3", "-q", "-i"], False, True, "open"),
        (["python3", "-m", "pdb"], False, True, "asks"),
        (["python3", "-c", "input()"], False, True, "asks"),
        (["python3", "setup.py"], False, True, "asks"),
        (["apt", "install", "x"], False, True, "asks"),
        (["apt", "install", "x"], False, False, "running"),
        ([], False, True, "asks"),
    ],
)
def test_the_word_for_a_program(argv: list[str], full_screen: bool, waits: bool, word: str) -> None:
    front = ProcessInfo(7, tuple(argv), argv[0].rsplit("/", 1)[-1] if argv else "x")
    found = name_state(front, "", at_prompt=False, hidden=False, full_screen=full_screen, waits=waits, edits=False)
    assert found == word, program_name(front)
