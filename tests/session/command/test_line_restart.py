"""What stands on the line is known to a new server as well: nothing is typed onto what somebody began before the restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.support.session.running import run as run_loop
from tests.support.session.running import settings_of
from tests.support.session.shells import AGENT, each_shell, make_home, open_shell, run, text_of, with_shell
from tests.support.waiting import until
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import LineInUse
from wsh.wire.system.place import Places

PERSON = Actor("person", "alice")


def over_a_restart(
    places: Places,
    shell: str,
    before: Callable[[Session], Awaitable[None]],
    after: Callable[[Session], Awaitable[None]],
) -> None:
    async def work() -> None:
        settings = settings_of(session__line_wait_ms=0)
        first = await SessionRegistry.open(places, settings)
        session = await open_shell(first, shell, make_home(places.state.parent))
        await before(session)
        await first.aclose()
        second = await SessionRegistry.open(places, settings)
        try:
            await after(second.get_session(session.name))
        finally:
            await second.stop()

    run_loop(work())


async def refused(session: Session) -> LineInUse:
    with pytest.raises(LineInUse) as caught:
        await session.run_command("echo mixed", AGENT, timeout_ms=300)
    assert caught.value.typed_by == {"kind": "person", "id": "alice"} and caught.value.facts["typed_at"]
    return caught.value


@each_shell
def test_a_shells_line_has_its_author_after_a_restart(places: Places, shell: str) -> None:
    async def before(session: Session) -> None:
        await run(session, "true")
        await session.input.send(b"echo half", PERSON)
        await session.wait(WaitSpec(text="echo half", generation=0, max_wait_ms=60_000))

    async def after(session: Session) -> None:
        assert (await refused(session)).facts["text"] == "echo half"
        done = await run(session, "echo clean", clear_line=True)
        assert text_of(done) == "clean"
        assert (await refused(session)).facts["text"] == "echo half", "it was not put back"
        await session.input.send(b"\r", PERSON)
        await until(lambda: [c.command for c in session.history.list_commands()][-1] == "echo half", "it did not run")
        assert text_of(await run(session, "echo free")) == "free"

    over_a_restart(places, shell, before, after)


def test_a_nested_shells_line_is_in_use_after_a_restart(places: Places) -> None:
    async def before(session: Session) -> None:
        await run(session, "bash --norc", timeout_ms=300)
        await session.input.send(b"echo half", PERSON)
        await session.wait(WaitSpec(text="echo half", generation=0, max_wait_ms=60_000))

    async def after(session: Session) -> None:
        assert (await refused(session)).facts["text"] == "echo half"

    over_a_restart(places, "bash", before, after)


def test_a_line_that_the_kernel_collects_is_in_use_after_a_restart(places: Places) -> None:
    async def before(session: Session) -> None:
        await run(session, "cat", timeout_ms=100)
        await session.input.send(b"half", PERSON)

    async def after(session: Session) -> None:
        assert (await refused(session)).facts["text"] == "half"
        cleared = await run(session, "whole", clear_line=True, timeout_ms=100)
        assert text_of(cleared).split("\n")[-1] == "whole"

    over_a_restart(places, "bash", before, after)


def test_a_secret_is_not_kept_for_a_successor(places: Places) -> None:
    async def before(session: Session) -> None:
        await run(session, "read -s -p 'Password: ' x; echo got", timeout_ms=100)
        await session.input.send(b"secr", PERSON)
        assert "secr" not in str(session.input.line.facts())

    async def after(session: Session) -> None:
        assert (await refused(session)).facts["text"] is None
        await session.input.send(b"et\r", PERSON)
        await session.wait(WaitSpec(text="got", generation=0, max_wait_ms=60_000))

    over_a_restart(places, "bash", before, after)


def test_a_secret_behind_a_relay_is_not_told(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await run(session, "script -q -c \"bash -c 'read -s -p Password: x; echo got'\" /dev/null", timeout_ms=300)
        await session.wait(WaitSpec(text="Password:", generation=0, max_wait_ms=60_000))
        await session.input.send(b"hunter2", PERSON)
        problem = await refused(session)
        assert problem.facts["text"] is None and "hunter" not in str(problem.to_wire())

    with_shell(places, "bash", work, session__line_wait_ms=0)


def test_commands_have_their_authors_after_a_kill_of_the_server(places: Places) -> None:
    """A snapshot is older than they are."""

    async def work() -> None:
        settings = settings_of()
        first = await SessionRegistry.open(places, settings)
        session = await open_shell(first, "bash", make_home(places.state.parent))
        await run(session, "echo by agent")
        await session.input.send(b"echo by person\r", PERSON)
        await until(lambda: [c.state for c in session.history.list_commands()] == 2 * ["finished"], "both")
        await session.input.send(b"read wait\r", PERSON)
        await until(lambda: len(session.history.list_commands()) == 3, "the third")
        await session.pending.wait()
        # Gone without a last word, as a killed server is.
        await first.keeper.aclose()
        second = await SessionRegistry.open(places, settings)
        try:
            again = second.get_session(session.name)
            await again.input.send(b"over\r", PERSON)
            await run(again, "echo by agent again")
            authors = [(c.command, c.author and c.author["kind"]) for c in again.history.list_commands()]
            assert authors == [
                ("echo by agent", "agent"),
                ("echo by person", "person"),
                ("read wait", "person"),
                ("echo by agent again", "agent"),
            ]
        finally:
            await second.stop()

    run_loop(work())
