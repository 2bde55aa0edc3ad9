"""A run that comes right after somebody's line is answered with its own output, never with that line's."""

from __future__ import annotations

from tests.support.session.running import run_with_registry
from tests.support.session.shells import AGENT, each_shell, make_home, open_shell, text_of, with_shell
from wsh.session.command.turn import count_unread
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.caller import Actor
from wsh.wire.system.place import Places

OTHER = Actor("agent", "other")
LINES = (b"seq 1 30\r", b"sleep 0.02\r", b"true\r")


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
