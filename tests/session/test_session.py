from __future__ import annotations

import asyncio
import itertools
import os
import time
from pathlib import Path

import pytest

from tests.support.session.running import open_quiet, plain, run_with_registry, whole_text
from tests.support.waiting import until
from wsh.process import ChildHandle, KillReport
from wsh.session.event import Actor, Exited, Output, Resized, SessionEvent, TagsChanged
from wsh.session.registry import LifecycleEvent, SessionCreated, SessionDestroyed, SessionRegistry, SessionRenamed
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import (
    CwdNotFound,
    InvalidEnvironment,
    InvalidPattern,
    InvalidRequest,
    InvalidSessionName,
    InvalidSize,
    LimitReached,
    MaxSessionsReached,
    ProgramNotFound,
    SessionExited,
    SessionNameTaken,
    SessionNotFound,
    SessionTaken,
    WaitTimeout,
)
from wsh.wire.system.place import Places

AGENT = Actor("agent", "test")
PERSON = Actor("person", "me")


def test_a_session_shows_what_its_child_prints_and_takes_what_is_typed(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        generation = await session.input.send(b"echo $((6*7))\r", AGENT)
        await session.wait(WaitSpec(input_wanted=True))
        assert "42" in plain(session)
        assert session.generation > generation
        assert session.input.last is not None and session.input.last[0] == AGENT

    run_with_registry(places, work)


def test_input_that_was_put_before_other_input_leaves_the_limit_as_it_is(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)

        async def clear_line() -> bytes:
            return b"\x15" * 100

        for _ in range(3):
            await session.input.send(b"x", AGENT, before=clear_line)
        most = session.input.limits.waiting_bytes
        with pytest.raises(LimitReached):
            await session.input.send(b"y" * (most + 1), AGENT)

    run_with_registry(places, work, session__input_bytes=4096)


def test_spec_is_obeyed_in_size_folder_environment_tags_and_name(places: Places, tmp_path: Path) -> None:
    async def work(registry: SessionRegistry) -> None:
        folder = tmp_path / "a b"
        folder.mkdir()
        session = await registry.open_session(
            SessionSpec(
                name="it.is-1_",
                command="stty size; pwd; echo $COLOUR $TERM",
                rows=33,
                cols=99,
                cwd=str(folder),
                env={"COLOUR": "teal"},
                tags=("b", "a", "b"),
            )
        )
        await session.wait(WaitSpec(exit=True))
        assert plain(session)[:3] == ["33 99", str(folder), "teal xterm-256color"]
        assert (session.name, session.tags, session.exit_code) == ("it.is-1_", ("a", "b"), 0)

    run_with_registry(places, work)


def test_an_exited_session_stays_readable_keeps_its_name_and_refuses_input(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(name="brief", command="echo last words; exit 7"))
        done = await session.wait(WaitSpec(exit=True))
        assert done.ended_by == "exit"
        assert (session.running, session.exit_code) == (False, 7)
        assert plain(session)[0] == "last words"
        with pytest.raises(SessionExited) as caught:
            await session.input.send(b"x", AGENT)
        assert caught.value.facts["exit_code"] == 7
        with pytest.raises(SessionNameTaken):
            await registry.open_session(SessionSpec(name="brief"))
        await registry.kill("brief")
        with pytest.raises(SessionNotFound):
            registry.get_session("brief")
        assert not session.folder.path.exists()

    run_with_registry(places, work)


def test_a_signal_that_ends_the_child_is_told(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="kill -9 $$"))
        await session.wait(WaitSpec(exit=True))
        assert (session.exit_code, session.exit_signal) == (137, 9)

    run_with_registry(places, work)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (SessionSpec(name="a/b"), InvalidSessionName),
        (SessionSpec(name=""), InvalidSessionName),
        (SessionSpec(name="x" * 65), InvalidSessionName),
        (SessionSpec(rows=0), InvalidSize),
        (SessionSpec(cols=1001), InvalidSize),
        (SessionSpec(command="no-such-program-here --now"), ProgramNotFound),
        (SessionSpec(command="/etc/passwd"), ProgramNotFound),
        (SessionSpec(command="   "), InvalidRequest),
        (SessionSpec(cwd="/no/such/folder"), CwdNotFound),
        (SessionSpec(env={"A": 1}), InvalidEnvironment),  # type: ignore[dict-item]
        (SessionSpec(env={"A=B": "c"}), InvalidEnvironment),
        (SessionSpec(env={"A": "c\0d"}), InvalidEnvironment),
    ],
)
def test_a_spec_that_cannot_be_is_refused_and_leaves_nothing(
    places: Places, spec: SessionSpec, error: type[Exception]
) -> None:
    async def work(registry: SessionRegistry) -> None:
        with pytest.raises(error):
            await registry.open_session(spec)
        assert registry.list_sessions() == []
        assert list(places.sessions.iterdir()) == []

    run_with_registry(places, work)


def test_more_sessions_than_the_setting_allows_are_refused(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        for _ in range(2):
            await registry.open_session(SessionSpec(command="cat"))
        with pytest.raises(MaxSessionsReached) as caught:
            await registry.open_session(SessionSpec(command="cat"))
        assert caught.value.facts["setting"] == "server.max_sessions"

    run_with_registry(places, work, server__max_sessions=2)


def test_rename_tags_and_lifecycle_are_told_in_order(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        told: list[LifecycleEvent] = []
        registry.lifecycle.add(told.append)
        first = await registry.open_session(SessionSpec(name="one", command="cat"))
        await registry.open_session(SessionSpec(name="two", command="cat"))
        heard: list[SessionEvent] = []
        first.listeners.add(heard.append)
        registry.rename("one", "uno")
        with pytest.raises(SessionNameTaken):
            registry.rename("two", "uno")
        with pytest.raises(InvalidSessionName):
            registry.rename("two", "deux fois")
        first.set_tags(add=("x", "y"))
        first.set_tags(add=("z",), remove=("x", "unknown"))
        assert [s.name for s in registry.list_sessions()] == ["uno", "two"]
        assert [s.name for s in registry.list_sessions(["z"])] == ["uno"]
        assert [s.name for s in registry.list_sessions(["nobody"])] == []
        assert TagsChanged(("y", "z"), ("z",), ("x",)) in heard
        await registry.kill("uno")
        assert [type(t) for t in told] == [SessionCreated, SessionCreated, SessionRenamed, SessionDestroyed]

    run_with_registry(places, work)


def test_a_session_that_rests_needs_no_dictionary_and_no_task(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        session.resize(10, 40)
        await session.input.send(b"echo some line\r", AGENT)
        await until(lambda: not session.pending)
        # A thousand sessions that rest are measured by `python -m bench session`; these two were a tenth of that.
        assert not vars(session)
        assert session.memory._telling is None

    run_with_registry(places, work)


def test_resize_reaches_the_child_and_is_told(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry, "bash --norc --noprofile")
        heard: list[SessionEvent] = []
        session.listeners.add(heard.append)
        session.resize(10, 40)
        await session.input.send(b"stty size\r", AGENT)
        await session.wait(WaitSpec(input_wanted=True))
        assert "10 40" in plain(session)
        assert Resized(10, 40) in heard
        with pytest.raises(InvalidSize):
            session.resize(0, 40)

    run_with_registry(places, work)


def test_quiet_waits_for_new_activity_when_given_the_current_generation(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        await session.wait(WaitSpec(input_wanted=True))
        seen = session.generation
        with pytest.raises(WaitTimeout) as caught:
            await session.wait(WaitSpec(quiet_ms=20, max_wait_ms=150, generation=seen))
        assert caught.value.timeout_ms == 150
        waiting = asyncio.create_task(session.wait(WaitSpec(quiet_ms=50, generation=seen)))
        await session.input.send(b"echo hi\r", AGENT)
        done = await waiting
        assert done.ended_by == "quiet" and done.generation > seen

    run_with_registry(places, work)


def test_the_command_of_a_session_means_the_words_that_it_was_opened_with(places: Places) -> None:
    """Run anew as a command, such as by *New one like it*, it is the same program with the same words."""

    async def work(registry: SessionRegistry) -> None:
        words = ["printf", "<%s>\n", "one two", "a;b", "$HOME", "line\nbreak", ""]
        first = await registry.open_session(SessionSpec(argv=words))
        again = await registry.open_session(SessionSpec(command=first.command))
        for session in (first, again):
            await session.wait(WaitSpec(exit=True))
            assert plain(session)[:6] == ["<one two>", "<a;b>", "<$HOME>", "<line", "break>", "<>"]

    run_with_registry(places, work)


def test_fresh_waits_for_one_whole_silence(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="sleep 3600"))  # it never prints
        session.last_activity -= 3600  # silent for an hour
        await session.wait(WaitSpec(quiet_ms=600_000))
        started = time.monotonic()
        await session.wait(WaitSpec(quiet_ms=150, fresh=True))
        assert time.monotonic() - started >= 0.15

    run_with_registry(places, work)


def test_input_restarts_the_silence_that_a_wait_counts(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="stty -echo; echo silent; exec sleep 3600"))
        await session.wait(WaitSpec(text="silent", generation=0))
        session.last_activity -= 3600
        typed = time.monotonic()
        await session.input.send(b"x\r", AGENT)
        await session.wait(WaitSpec(quiet_ms=150))
        assert time.monotonic() - typed >= 0.15, "the silence from before the input"

    run_with_registry(places, work)


def test_text_is_found_in_new_output_only_across_colours_and_cursor_movement(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        await session.input.send(b"printf 'nee'; sleep .1; printf '\\033[31mdle\\033[0m in hay\\n'\r", AGENT)
        done = await session.wait(WaitSpec(text="needle in hay"))
        assert (done.ended_by, done.matched) == ("text", "needle in hay")
        with pytest.raises(WaitTimeout):
            await session.wait(WaitSpec(text="needle in hay", max_wait_ms=150))
        await session.input.send(b"sleep .05; tput cup 5 10; printf 'down here'; echo\r", AGENT)
        done = await session.wait(WaitSpec(regex=r"^ {10}down he.e"))
        assert (done.ended_by, done.matched) == ("regex", " " * 10 + "down here")
        with pytest.raises(InvalidPattern):
            await session.wait(WaitSpec(regex="("))

    run_with_registry(places, work)


def test_the_first_condition_that_holds_ends_the_wait_and_is_named(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        waiting = asyncio.create_task(session.wait(WaitSpec(text="never", exit=True, max_wait_ms=60_000)))
        await session.input.send(b"exit 3\r", AGENT)
        assert (await waiting).ended_by == "exit"
        with pytest.raises(InvalidRequest):
            WaitSpec()

    run_with_registry(places, work)


def test_a_person_who_took_over_keeps_agents_from_typing(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        session.input.take_over("me")
        with pytest.raises(SessionTaken):
            await session.input.send(b"rm x\r", AGENT)
        await session.input.send(b"echo mine\r", PERSON)
        session.input.hand_back()
        await session.input.send(b"echo again\r", AGENT)
        await session.wait(WaitSpec(text="again"))

    run_with_registry(places, work)


def test_killing_a_session_ends_daemons_that_left_its_group(places: Places, tmp_path: Path) -> None:
    async def work(registry: SessionRegistry) -> None:
        pid_file = tmp_path / "pid"
        session = await open_quiet(registry)
        await session.input.send(f"(setsid sh -c 'echo $$ > {pid_file}; exec sleep 1000' &)\r".encode(), AGENT)
        await until(lambda: pid_file.exists() and pid_file.read_text().strip(), "the daemon's number")
        pid = int(pid_file.read_text())
        os.kill(pid, 0)
        report = await registry.kill(session.name)
        assert not report.survivors
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run_with_registry(places, work)


def test_a_session_whose_program_survives_its_kill_stays_on_the_list(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await open_quiet(registry)
        child = session.child
        assert child is not None
        left = KillReport(((child.pid, 1),), 0, (), 1.0)

        async def kill_in_vain(child: ChildHandle, grace_ms: int = 0) -> KillReport:
            return left

        with monkeypatch.context() as patch:
            patch.setattr(registry.keeper, "kill_tree", kill_in_vain)  # as of one that waits in the kernel
            assert await registry.kill(session.name) == left
        assert registry.list_sessions() == [session] and not session.closed
        await session.input.send(b"echo $((6*7))\r", AGENT)
        await session.wait(WaitSpec(text="42", max_wait_ms=60_000))
        assert not (await registry.kill(session.name)).survivors
        assert registry.list_sessions() == [] and not session.folder.path.exists()

    run_with_registry(places, work)


def test_a_flood_keeps_every_line_in_journal_and_the_newest_in_scrollback(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="seq 300000"))
        done = await session.wait(WaitSpec(exit=True, max_wait_ms=60_000))
        assert done.ended_by == "exit"
        page = session.terminal.scrollback(limit=6, styled=False)
        assert [str(line) for line in page.lines] == [*(str(n) for n in range(299_996, 300_001)), ""]
        expected = "".join(f"{n}\r\n" for n in range(1, 300_001)).encode()
        from wsh.session.record.journal import Journal

        journal = Journal(session.folder.path)
        await until(lambda: journal.end >= len(expected), "the whole flood on disk", seen=lambda: journal.end)
        data, missing = journal.read_bytes(0, len(expected))
        assert missing == 0 and data == expected
        assert session.generation == len(expected)

    run_with_registry(places, work)


def test_output_events_cover_every_byte_once(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(command="sleep .2; seq 50000"))
        outputs: list[Output] = []
        exits: list[Exited] = []
        chunks: list[bytes] = []
        session.listeners.add(lambda e: outputs.append(e) if isinstance(e, Output) else None)
        session.listeners.add(lambda e: exits.append(e) if isinstance(e, Exited) else None)
        session.output.tap(lambda _offset, data: chunks.append(data))
        await session.wait(WaitSpec(exit=True))
        assert b"".join(chunks) == "".join(f"{n}\r\n" for n in range(1, 50_001)).encode()
        assert all(a.end == b.start for a, b in itertools.pairwise(outputs))
        assert (outputs[0].start, outputs[-1].end) == (0, session.generation)
        assert exits == [Exited(0, None)]

    run_with_registry(places, work)


def test_a_query_is_answered_without_a_viewer(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(
            SessionSpec(command="stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -c; stty sane")
        )
        await session.wait(WaitSpec(exit=True))
        assert "033   [   1   ;   1   R" in whole_text(session)

    run_with_registry(places, work)


def test_a_sessions_environment_has_no_token_of_the_server(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSH_TOKEN", "secret")
    monkeypatch.setenv("PM_INTERACTIVE_TERMINAL_TOKEN", "secret")

    async def work(registry: SessionRegistry) -> None:
        session = await registry.open_session(SessionSpec(name="clean", command="env"))
        await session.wait(WaitSpec(exit=True))
        text = whole_text(session)
        assert "secret" not in text and "WSH_SESSION=clean" in text

    run_with_registry(places, work)


def test_a_session_can_be_killed_at_the_very_moment_its_program_ends(places: Places) -> None:
    async def one(registry: SessionRegistry, n: int) -> None:
        session = await registry.open_session(SessionSpec(command="true"))
        await session.wait(WaitSpec(exit=True))
        # Meanwhile the housekeeping lets go of ended sessions, too.
        await asyncio.sleep(n * 0.02 % 0.7)
        await asyncio.gather(registry.destroy(session), registry.destroy(session))
        assert session not in registry.list_sessions()

    async def work(registry: SessionRegistry) -> None:
        for first in range(0, 40, 10):
            await asyncio.gather(*(one(registry, n) for n in range(first, first + 10)))
        assert registry.list_sessions() == []

    run_with_registry(places, work)
