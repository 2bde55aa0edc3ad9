"""What terminals print can be searched: while it runs, a second later, and after a restart of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.session.running import open_quiet, run, run_with_registry, settings_of
from tests.support.session.shells import AGENT, make_home, open_shell
from tests.support.waiting import HANG_S, until
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.system.place import Places
from wsh.workspace.service import WorkspaceService
from wsh.workspace.surroundings import ToolContext
from wsh.workspace.tool import call_tool
from wsh.workspace.transcript.feed import STRETCH_BYTES, SessionTranscripts
from wsh.workspace.transcript.transcript import Transcript, TranscriptStore


class Desk:
    """Sessions, transcripts and tools together, as the composition root wires them."""

    def __init__(self, registry: SessionRegistry, places: Places, *, enabled: bool = True) -> None:
        self.service = WorkspaceService(places, registry.settings)
        self.feed = SessionTranscripts(registry, self.service.transcripts, enabled=enabled)
        self.service.upkeep.use(self.feed)
        self.context = ToolContext(str(places.state))

    async def search(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        arguments = {"query": query, "mode": "transcripts"} | arguments
        hits: list[dict[str, Any]] = (await call_tool(self.service, "search", arguments, self.context))["hits"]
        return hits

    async def aclose(self) -> None:
        await self.feed.aclose()
        await self.service.aclose()


def with_desk(places: Places, body: Callable[[SessionRegistry, Desk], Awaitable[None]], **settings: object) -> None:
    """Do `body` at a desk that follows the sessions; everything is closed afterwards, whatever happened."""

    async def main(registry: SessionRegistry) -> None:
        desk = Desk(registry, places, enabled=registry.settings.get_bool("journal.enabled"))
        try:
            await desk.feed.start()
            await body(registry, desk)
        finally:
            await desk.aclose()

    run_with_registry(places, main, **settings)


def test_a_command_is_one_document_with_its_output_status_place_and_times(places: Places, tmp_path: Path) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await open_shell(registry, "bash", make_home(tmp_path))
        await session.run_command(f"cd {tmp_path}", actor=AGENT)
        before = time.time()
        await session.run_command("echo marsupial-$((40+2)); (exit 3)", actor=AGENT)
        await session.run_command("echo other", actor=AGENT)
        (hit,) = await desk.search("marsupial-42", match="literal")
        told = hit["transcript"]
        assert hit["kind"] == "command" and hit["source"] == "transcript"
        assert told["session"] == session.name and told["exitCode"] == 3
        assert told["cwd"] == str(tmp_path) and told["command"].startswith("echo marsupial")
        assert told["durationMs"] is not None and told["startedAt"][:10] == time.strftime(
            "%Y-%m-%d", time.gmtime(before)
        )
        assert [h["transcript"]["exitCode"] for h in await desk.search("marsupial", exitCode=3)] == [3]
        assert await desk.search("marsupial", exitCode=0) == []
        assert await desk.search("marsupial", session="nobody") == []

    with_desk(places, body)


def test_a_line_of_a_command_that_still_runs_is_found(places: Places, tmp_path: Path) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await open_shell(registry, "bash", make_home(tmp_path))
        await session.input.send(b"echo early-$((1+1)); sleep 100\n", AGENT)
        await session.wait(WaitSpec(text="early-2", generation=0, max_wait_ms=60_000))
        (hit,) = await desk.search("early-2", match="literal")
        assert hit["transcript"]["exitCode"] is None
        await session.input.send(b"\x03", AGENT)

    with_desk(places, body)


def test_a_program_without_shell_integration_is_searchable_too(places: Places) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await open_quiet(registry, "sh", integration=False)
        await session.input.send(b"echo numbat-$((5+5))\n", AGENT)
        await session.wait(WaitSpec(text="numbat-10", generation=0, max_wait_ms=60_000))
        (hit,) = await desk.search(r"numbat-\d+", match="regex", session=session.name)
        assert "numbat-10" in hit["snippet"]["text"]

    with_desk(places, body)


def test_what_was_printed_survives_the_server_and_the_session(places: Places, tmp_path: Path) -> None:
    async def first() -> None:
        registry = await SessionRegistry.open(places, settings_of())
        session = await open_shell(registry, "bash", make_home(tmp_path))
        await session.run_command("echo kowari-$((6+1))", actor=AGENT)
        await registry.aclose()  # no transcripts were taken: as if the server had died before

    async def second() -> None:
        registry = await SessionRegistry.open(places, settings_of())
        desk = Desk(registry, places)
        await desk.feed.start()
        assert len(await desk.search("kowari-7", match="literal")) == 1
        await registry.stop()
        await desk.aclose()

    async def third() -> None:
        service = WorkspaceService(places, settings_of())
        arguments = {"query": "kowari-7", "match": "literal", "mode": "transcripts"}
        found = await call_tool(service, "search", arguments, ToolContext("/"))
        assert [hit["transcript"]["command"] for hit in found["hits"]] == ["echo kowari-$((6+1))"]
        await service.aclose()

    run(first())
    run(second())
    run(third())


@pytest.mark.parametrize("marks", [True, False])
def test_what_a_session_printed_is_found_after_it_was_killed_at_once(
    places: Places, tmp_path: Path, marks: bool
) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        if marks:
            session = await open_shell(registry, "bash", make_home(tmp_path))
            await session.run_command("echo dibbler-$((3+4))", actor=AGENT)
        else:
            session = await open_quiet(registry, "sh", integration=False)
            await session.input.send(b"echo dibbler-$((3+4))\n", AGENT)
            await session.wait(WaitSpec(text="dibbler-7", generation=0, max_wait_ms=60_000))
        await registry.kill(session.name)
        (hit,) = await desk.search("dibbler-7", match="literal")
        assert hit["transcript"]["session"] == session.name

    with_desk(places, body)


def test_what_was_made_of_a_session_before_it_was_killed_does_not_replace_its_last_words(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await registry.open_session(SessionSpec(command="echo potoroo; read go; echo quo''kka; exec cat"))
        await session.wait(WaitSpec(text="potoroo", generation=0, max_wait_ms=60_000))
        made, held, store_all = asyncio.Event(), asyncio.Event(), desk.feed._store_all

        async def wait_and_store(*given: Any) -> None:
            made.set()
            await held.wait()
            await store_all(*given)

        monkeypatch.setattr(desk.feed, "_store_all", wait_and_store)
        early = asyncio.ensure_future(desk.feed.refresh())
        await made.wait()
        await session.input.send(b"\n", AGENT)
        await session.wait(WaitSpec(text="quokka", generation=0, max_wait_ms=60_000))
        await registry.kill(session.name)
        held.set()
        await early
        assert len(await desk.search("quokka")) == 1

    with_desk(places, body)


def test_a_search_does_not_wait_for_what_is_still_being_taken_in(places: Places) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        await registry.open_session(SessionSpec(command="echo early; exec cat"))
        async with desk.feed._lock:  # as while all sessions of a start are rendered
            stale = await desk.service.upkeep.refresh(patience_s=0.01)
            assert stale is not None and "still being taken in" in stale
            status = await call_tool(desk.service, "index_status", {}, desk.context)
            assert status["transcripts"] is not None
        assert await desk.service.upkeep.refresh(patience_s=HANG_S) is None

    with_desk(places, body, index__search_timeout_ms=100)


def test_a_renamed_session_is_found_by_its_new_name(places: Places, tmp_path: Path) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await open_shell(registry, "bash", make_home(tmp_path))
        await session.run_command("echo quoll", actor=AGENT)
        assert await desk.search("quoll", session=session.name)
        registry.rename(session.name, "laboratory")
        assert [h["transcript"]["session"] for h in await desk.search("quoll", session="laboratory")] == ["laboratory"]

    with_desk(places, body)


def test_hidden_input_never_reaches_the_index(places: Places, tmp_path: Path) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await open_shell(registry, "bash", make_home(tmp_path))
        await session.input.send(b"read -s -p 'Pa''ss: ' secret; echo got ${#secret}\n", AGENT)
        await session.wait(WaitSpec(text="Pass:", generation=0, max_wait_ms=60_000))
        await session.input.send(b"tr0ub4dor\n", AGENT)
        await session.wait(WaitSpec(text="got 9", generation=0, max_wait_ms=60_000))
        assert await desk.search("got 9", match="literal")
        assert await desk.search("tr0ub4dor", match="literal") == []

    with_desk(places, body)


def test_without_a_journal_the_mode_is_missing_and_says_so(places: Places) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        with pytest.raises(Exception, match="journaling is off") as caught:
            await desk.search("x")
        assert getattr(caught.value, "code", None) == "CAPABILITY_MISSING"
        status = await call_tool(desk.service, "workspace_status", {}, desk.context)
        assert status["modes"]["transcripts"]["available"] is False

    with_desk(places, body, journal__enabled=False)


def test_a_long_output_keeps_its_ends(places: Places, tmp_path: Path) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await open_shell(registry, "bash", make_home(tmp_path))
        await session.run_command(
            "echo firstline; seq 1 400000; echo lastline-$((2+2))", actor=AGENT, max_wait_ms=60_000
        )
        assert await desk.search("firstline", match="literal")
        assert await desk.search("lastline-4", match="literal")

    with_desk(places, body)


def test_documents_leave_after_their_days(places: Places) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        now = time.time()
        counts = []
        for _ in range(2):  # the look at old documents with which a desk begins may take the first one, but comes once
            desk.service.transcripts.put(
                [
                    Transcript("old", "s", "make", "bandicoot old", "/", now - 31 * 86_400, 0, 1),
                    Transcript("new", "s", "make", "bandicoot new", "/", now - 86_400, 0, 1),
                ]
            )
            built = await call_tool(desk.service, "index_build", {"mode": "transcripts"}, desk.context)
            counts.append(built["transcripts"]["expired"])
            assert [h["snippet"]["text"] for h in await desk.search("bandicoot")] == ["$ make\nbandicoot new"]
        assert 1 in counts

    with_desk(places, body)


AGES = {"old": 31, "older": 400, "new": 29}


def test_documents_leave_though_nobody_builds(places: Places) -> None:
    store = TranscriptStore(places.index / "transcripts.db", 30)
    now = time.time()
    store.put([Transcript(k, "s", "make", "bandicoot", "/", now - days * 86_400, 0, 1) for k, days in AGES.items()])
    store.close()

    async def body(registry: SessionRegistry, desk: Desk) -> None:
        async def is_one_left() -> bool:
            return len(await desk.search("bandicoot")) == 1

        await until(is_one_left, "the old documents to go")

    with_desk(places, body)


def test_a_start_holds_nothing_up_and_takes_in_only_what_is_new(places: Places) -> None:
    """Rendering what hundreds of sessions printed takes minutes, and the contract's room opens after this one."""
    printed = 5 * STRETCH_BYTES

    async def body(registry: SessionRegistry, desk: Desk) -> None:
        session = await registry.open_session(SessionSpec(command=f"yes capybara | head -c {printed}; exec cat"))
        await until(lambda: session.generation >= printed, "its output")
        await desk.feed.refresh()
        later = SessionTranscripts(registry, desk.service.transcripts, enabled=True)
        async with later._lock:  # as long as this is held, nothing is rendered
            await later.start()
            assert later._stretches == {session.sid: session.generation // STRETCH_BYTES * STRETCH_BYTES}
        await later.aclose()
        assert not later._stretches, "it has been put"
        assert await desk.search("capybara")

    with_desk(places, body)


def test_the_end_does_not_wait_for_transcripts_longer_than_it_may(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(registry: SessionRegistry, desk: Desk) -> None:
        hasty = SessionTranscripts(registry, desk.service.transcripts, enabled=True, close_s=0)
        await hasty.start()
        session = await registry.open_session(SessionSpec(command="echo wombat; exec cat"))
        await until(lambda: session.sid in hasty._stretches, "its output")
        await hasty.aclose()
        assert hasty._stretches, "it is left for the next server"
        assert "the transcripts of 1 sessions are not whole" in caplog.text

    with_desk(places, body)
