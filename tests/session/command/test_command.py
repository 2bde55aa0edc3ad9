"""Commands as objects: bounded history, output by offset, and the same after a restart."""

from __future__ import annotations

import json

import pytest

from tests.support.session.running import run as run_loop
from tests.support.session.running import run_with_registry, settings_of
from tests.support.session.shells import AGENT, each_shell, make_home, open_shell, run, text_of, with_shell
from tests.support.waiting import stays, until
from wsh.session import event as ev
from wsh.session.command.command import CommandLog
from wsh.session.event import SessionEvent
from wsh.session.record.playback import read_output, read_output_page
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import CommandNotFound, InvalidPattern
from wsh.wire.system.place import Places


@each_shell
def test_the_history_tells_what_ran_where_and_how_it_ended(places: Places, shell: str) -> None:
    async def work(session: Session) -> None:
        heard: list[SessionEvent] = []
        session.listeners.add(
            lambda event: heard.append(event) if isinstance(event, ev.CommandStarted | ev.CommandFinished) else None
        )
        await run(session, "cd /tmp")
        await run(session, "seq 1 3; false")
        first, second = (command.to_wire() for command in session.history.list_commands())
        assert (first["command"], first["cwd"], first["exit_code"]) == ("cd /tmp", "/", 0)
        assert (second["command"], second["cwd"], second["exit_code"]) == ("seq 1 3; false", "/tmp", 1)
        assert second["started"] >= first["started"] > 1_700_000_000 and second["duration_ms"] >= 0
        shown = session.terminal.lines_between(second["first_line"], second["last_line"] + 1)
        assert shown == ["1", "2", "3"]
        assert heard == [ev.CommandStarted(1), ev.CommandFinished(1), ev.CommandStarted(2), ev.CommandFinished(2)]

    with_shell(places, shell, work)


def test_what_people_type_is_known_as_well(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "true")
        await session.input.send(b"echo typd\x1b[D\x1b[De\r", AGENT)
        ended = await session.wait(WaitSpec(command=True, max_wait_ms=60_000))
        assert (ended.ended_by, ended.command_id) == ("command", 2)
        command = session.history.get_command(2)
        assert command.command == "echo tyepd" and (await read_output(session, command, 100)).text == "tyepd"

    with_shell(places, "bash", work)


@each_shell
def test_pasted_lines_are_commands_that_have_all_ended(places: Places, shell: str) -> None:
    lines = ["echo p0", "echo p1; false", "echo p2", "sh -c 'exit 4'"]

    async def work(session: Session) -> None:
        await session.run_command("true", AGENT, max_wait_ms=60_000)
        log = session.commands
        assert log is not None
        text = "\n".join(lines).encode()
        await session.input.send(b"\x1b[200~" + text + b"\x1b[201~\r", AGENT)
        await until(lambda: log.phase == "prompt" and any(c.exit_code == 4 for c in log), "the last line's end")
        told = list(log)[1:]
        assert {command.state for command in told} == {"finished"}, told
        assert "\n".join(command.command for command in told).splitlines() == lines
        assert told[-1].exit_code == 4

    with_shell(places, shell, work)


def test_history_is_bounded_and_says_what_is_gone(places: Places) -> None:
    async def work(session: Session) -> None:
        for _ in range(5):
            await run(session, "true")
        assert [command.id for command in session.history.list_commands()] == [3, 4, 5]
        with pytest.raises(CommandNotFound):
            session.history.get_command(1)

    with_shell(places, "bash", work, session__command_history=3)


def test_output_is_read_by_line_and_searched(places: Places) -> None:
    async def work(session: Session) -> None:
        await run(session, "for i in $(seq 1 5000); do printf '\\e[3%dmline %d\\e[0m\\n' $((i % 8)) $i; done")
        await run(session, "true")
        command = session.history.get_command(1)
        page = await read_output_page(session, command, offset=4998, limit=10)
        assert (page.lines, page.total, page.missing_bytes) == (["line 4999", "line 5000"], 5000, 0)
        found = await read_output_page(session, command, regex=r"line 1?00$", limit=5)
        assert (found.lines, found.numbers, found.matches) == (["line 100"], [99], 1)
        literal = await read_output_page(session, command, search="line 49", offset=100, limit=2)
        assert literal.matches == 111 and literal.numbers == [4988, 4989]
        styled = await read_output_page(session, command, limit=1, styled=True)
        assert styled.lines == [[{"text": "line 1", "fg": {"indexed": 1}}]]
        with pytest.raises(InvalidPattern):
            await read_output_page(session, command, regex="(")

    with_shell(places, "bash", work)


def test_output_without_a_journal_is_known_while_it_is_new(places: Places) -> None:
    async def work(session: Session) -> None:
        outcome = await run(session, "seq 1 2000")
        assert outcome.output is not None and outcome.output.total_lines == 2000
        page = await read_output_page(session, session.history.get_command(1))
        assert page.total == 2000
        await run(session, "true")
        gone = await read_output_page(session, session.history.get_command(1))
        assert gone.total == 0 and gone.missing_bytes == session.history.get_command(1).output_bytes

    with_shell(places, "bash", work, journal__enabled=False)


def test_a_long_history_has_one_copy_of_who_and_where(places: Places) -> None:
    """A thousand commands in each of a thousand sessions are remembered: what they have in common is kept once."""

    async def work(session: Session) -> None:
        for _ in range(3):
            await run(session, "true")
        log = session.commands
        assert log is not None
        after = CommandLog("", "bash", 3)
        after.recall(json.loads(json.dumps(log.facts())))
        for commands in (list(log), list(after)):
            assert [command.author for command in commands] == 3 * [{"kind": "agent", "id": AGENT.id}]
            assert len({id(command.author) for command in commands}) == 1
            assert len({id(command.cwd) for command in commands}) == 1

    with_shell(places, "bash", work)


@each_shell
@pytest.mark.parametrize("kind", ["snapshot", "replay"])
def test_commands_come_back_after_a_restart(places: Places, shell: str, kind: str) -> None:
    home = make_home(places.state.parent)
    # Without snapshots in between everything is learnt anew from the journal.
    settings = settings_of(journal__snapshot_interval_s=0.1 if kind == "snapshot" else 3600)

    async def before() -> list[dict[str, object]]:
        registry = await SessionRegistry.open(places, settings)
        session = await open_shell(registry, shell, home)
        await run(session, "echo first; sh -c 'exit 3'")
        await run(session, "if )")
        await run(session, "seq 1 400")
        await session.input.send(b"sleep 0.6; echo late\r", AGENT)
        await session.wait(WaitSpec(text="sleep 0.6", max_wait_ms=60_000))
        if kind == "snapshot":
            await stays(lambda: session.running, "the shell, a few snapshots long,", 0.3)
            await registry.aclose()
        else:
            await registry.keeper.aclose()  # as if killed: nothing is written down
            registry.pump.close()
        return [command.to_wire() for command in session.history.list_commands()]

    async def after(known: list[dict[str, object]]) -> None:
        registry = await SessionRegistry.open(places, settings)
        try:
            (session,) = registry.list_sessions()
            while session.history.ended_count < 4:
                await session.wait(WaitSpec(command=True, max_wait_ms=60_000))
            got = [command.to_wire() for command in session.history.list_commands()]
            for old, new in zip(known, got, strict=False):
                same = ("id", "command", "cwd", "exit_code", "pipestatus", "output_bytes", "first_line", "last_line")
                if old["state"] == "finished":
                    assert [old[key] for key in same] == [new[key] for key in same]
            assert (got[-1]["command"], got[-1]["exit_code"]) == ("sleep 0.6; echo late", 0)
            assert (await read_output(session, session.history.get_command(1), 1000)).text == "first"
            assert (await read_output(session, session.history.get_command(3), 10_000)).total_lines == 400
            assert (await read_output(session, session.history.get_command(4), 1000)).text.strip().endswith("late")
            outcome = await run(session, "echo again; false")
            assert (outcome.finished_by, outcome.exit_code, text_of(outcome)) == ("command", 1, "again")
            assert outcome.command_id == 5
        finally:
            await registry.stop()

    run_loop(after(run_loop(before())))


def test_waits_name_the_condition_that_held(places: Places) -> None:
    async def body(registry: SessionRegistry) -> None:
        session = await open_shell(registry, "bash", make_home(places.state.parent))
        ready = await session.wait(WaitSpec(prompt=True, max_wait_ms=60_000))
        assert ready.ended_by == "prompt" and session.at_prompt == "yes"
        await session.input.send(b"sleep 0.3; false\r", AGENT)
        ended = await session.wait(WaitSpec(command=True, exit=True, generation=ready.generation, max_wait_ms=60_000))
        assert (ended.ended_by, ended.command_id) == ("command", 1)
        # it has ended already, after what the caller saw last
        again = await session.wait(WaitSpec(command=True, generation=ready.generation, max_wait_ms=1000))
        assert again.ended_by == "command"
        await session.input.send(b"cat\r", AGENT)
        wanted = await session.wait(WaitSpec(input_wanted=True, command=True, max_wait_ms=60_000))
        assert wanted.ended_by == "input_wanted"
        await session.input.send(b"\x04exit 3\r", AGENT)
        assert (await session.wait(WaitSpec(exit=True, max_wait_ms=60_000))).ended_by == "exit"
        assert session.exit_code == 3

    run_with_registry(places, body)
