from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.session import printer
from tests.support.session.printer import KINDS
from tests.support.session.running import open_quiet, plain, run, settings_of, whole_text
from tests.support.session.shells import make_home, open_shell
from tests.support.waiting import until, wait_until
from wsh.session.event import Actor
from wsh.session.record.journal import Journal
from wsh.session.record.sidecar import read_resizes
from wsh.session.registry import SessionRegistry, terminal_limits
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.terminal.terminal import Terminal
from wsh.wire.error import SessionExited
from wsh.wire.system.place import Places

AGENT = Actor("agent", "test")


def test_a_new_server_takes_live_sessions_over_as_they_were(places: Places) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of())
        session = await open_quiet(first, name="stays", tags=("x",), rows=20, cols=70)
        await session.input.send(b"seq 100; printf '\\033]2;a title\\007'; printf '\\033[1mbo''ld\\033[0m\\n'\r", AGENT)
        await session.wait(WaitSpec(text="bold"))
        await session.wait(WaitSpec(input_wanted=True))
        before = (session.generation, session.title, session.pid, session.terminal.screen(styled=True))
        lines = session.terminal.scrollback(limit=1000, styled=True).lines
        await first.aclose()
        second = await SessionRegistry.open(places, settings_of())
        try:
            again = second.get_session("stays")
            assert (again.generation, again.title, again.pid) == before[:3]
            assert again.terminal.screen(styled=True).lines == before[3].lines
            assert again.terminal.screen(styled=True).cursor == before[3].cursor
            assert again.terminal.scrollback(limit=1000, styled=True).lines == lines
            assert (again.tags, again.rows, again.cols, again.running) == (("x",), 20, 70, True)
            await again.input.send(b"echo still here\r", AGENT)
            await again.wait(WaitSpec(text="still here"))
        finally:
            await second.stop()

    run(work())


def test_a_command_that_ended_with_its_shell_has_ended_where_no_snapshot_was_written_after_it(places: Places) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of())
        session = await open_shell(first, "bash", make_home(places.state.parent))
        await session.wait(WaitSpec(prompt=True, max_wait_ms=60_000))
        await session.input.send(b"exec sh -c 'exit 4'\r", AGENT)
        await session.wait(WaitSpec(exit=True))
        await asyncio.to_thread(_until_written, Journal(session.folder.path), session.generation)
        await first.aclose()
        for path in session.folder.path.glob("snapshot.*"):
            path.unlink()
        second = await SessionRegistry.open(places, settings_of())
        try:
            again = second.get_session(session.name)
            await until(
                lambda: [c for c in again.history.list_commands() if c.state == "finished"], "the end of the command"
            )
            (command,) = again.history.list_commands()
            assert (command.command, command.state, command.exit_code) == ("exec sh -c 'exit 4'", "finished", 4)
        finally:
            await second.stop()

    run(work())


@pytest.mark.parametrize("left", ["nothing", "the description of before"])
async def test_a_description_that_a_killed_server_did_not_write_is_written_by_the_next(
    places: Places, left: str
) -> None:
    first = await SessionRegistry.open(places, settings_of())
    session = await open_quiet(first, name="kept")
    described = session.folder.path / "meta.json"
    await until(described.exists, "the first description")
    session.set_tags(add=("x",))
    session.resize(20, 70)
    await first.aclose()
    if left == "nothing":
        described.unlink()
    second = await SessionRegistry.open(places, settings_of())
    try:
        told = json.loads(described.read_bytes())
        assert (told["name"], told["tags"], told["rows"], told["cols"]) == ("kept", ["x"], 20, 70)
    finally:
        await second.stop()


def test_ended_sessions_come_back_readable(places: Places) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of())
        session = await first.open_session(SessionSpec(name="done", command="echo bye; exit 4"))
        await session.wait(WaitSpec(exit=True))
        await session.wait(WaitSpec(quiet_ms=50))
        await first.aclose()
        second = await SessionRegistry.open(places, settings_of())
        try:
            again = second.get_session("done")
            assert (again.running, again.exit_code) == (False, 4)
            assert whole_text(again).startswith("bye")
        finally:
            await second.stop()

    run(work())


@pytest.mark.parametrize("printed_after", [True, False])
def test_a_session_that_ended_with_the_machine_has_its_last_size(
    places: Places, tmp_path: Path, printed_after: bool
) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of())
        try:
            session = await open_quiet(first, name="wide", rows=20, cols=70)
            await asyncio.to_thread(wait_until, (session.folder.path / "meta.json").exists, "the description")
            session.resize(30, 90)
            if printed_after:
                await session.input.send(b"printf '%080d\\n' 7\r", AGENT)
                await session.wait(WaitSpec(regex="0{70}7"))
                await session.wait(WaitSpec(input_wanted=True))
            await asyncio.to_thread(_until_written, Journal(session.folder.path), session.generation)
            await asyncio.to_thread(_until_resized, session.folder.path)
            shutil.copytree(places.sessions, tmp_path / "copy")
        finally:
            await first.stop()
        shutil.rmtree(places.sessions, ignore_errors=True)
        shutil.copytree(tmp_path / "copy", places.sessions)
        second = await SessionRegistry.open(places, settings_of())
        try:
            again = second.get_session("wide")
            assert (again.running, again.rows, again.cols) == (False, 30, 90)
            assert (again.terminal.rows, again.terminal.cols) == (30, 90)
            assert not printed_after or f"{7:080d}" in plain(again)
        finally:
            await second.stop()

    run(work())


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "huge", "fifo", "meta", "meta fifo"])
def test_damage_on_disk_loses_only_what_is_damaged(places: Places, damage: str) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of(journal__snapshot_interval_s=0.1))
        session = await open_quiet(first, name="hurt")
        await session.input.send(b"seq 200; echo en''d\r", AGENT)
        await session.wait(WaitSpec(text="end"))
        await session.wait(WaitSpec(input_wanted=True))
        expected = whole_text(session)
        folder = session.folder.path
        await first.aclose()
        for path in folder.glob("meta.json" if damage.startswith("meta") else "snapshot.*"):
            data = path.read_bytes()
            if damage == "truncate":
                path.write_bytes(data[: len(data) // 2])
            elif damage == "flip":
                path.write_bytes(data[:100] + bytes([data[100] ^ 255]) + data[101:])
            elif damage == "huge":
                os.truncate(path, 1 << 42)  # takes no room on the disk, and more than there is in memory
            elif damage.endswith("fifo"):
                path.unlink()
                os.mkfifo(path)
            else:
                path.write_bytes(b"")
        second = await SessionRegistry.open(places, settings_of())
        try:
            again = second.get_session("hurt")
            assert whole_text(again) == expected
            assert bool(second.restored) == (not damage.startswith("meta"))
        finally:
            await second.stop()

    run(work())


def remove_whole(folder: Path) -> bool:
    """False where something was written meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_output_that_no_disk_has_comes_back_from_the_ring_and_the_loss_is_told(places: Places) -> None:
    async def work() -> None:
        first = await SessionRegistry.open(places, settings_of(journal__segment_bytes=65536))
        session = await open_quiet(first, name="unkept")
        assert first.list_warnings() == []
        await until(lambda: remove_whole(session.folder.path), "nothing to be written there")
        await session.input.send(b"seq 400000; echo al''l\r", AGENT)
        await session.wait(WaitSpec(text="all"))
        await session.wait(WaitSpec(input_wanted=True))
        assert any("unkept" in line and "disk" in line for line in first.list_warnings())
        expected = plain(session)
        await first.aclose()
        second = await SessionRegistry.open(places, settings_of())
        try:
            await second.get_session("unkept").wait(WaitSpec(quiet_ms=50))
            assert plain(second.get_session("unkept")) == expected
            assert any("could not be restored" in line for line in second.list_warnings())
        finally:
            await second.stop()

    run(work())


def test_when_the_keeper_dies_its_sessions_have_ended_and_new_ones_can_be_opened(places: Places) -> None:
    async def work() -> None:
        registry = await SessionRegistry.open(places, settings_of())
        try:
            session = await open_quiet(registry, name="lost")
            ended = await open_quiet(registry, name="ended")
            await ended.input.send(b"exit 3\r", AGENT)
            await ended.wait(WaitSpec(exit=True))
            shell = psutil.Process(session.pid)
            os.kill(registry.keeper.pid, signal.SIGKILL)
            assert (await session.wait(WaitSpec(exit=True))).ended_by == "exit"
            assert (session.running, session.exit_code, ended.exit_code) == (False, None, 3)
            assert plain(session)[0].startswith("$")
            with pytest.raises(SessionExited):
                await session.input.send(b"x", AGENT)
            again = await open_quiet(registry, name="again")
            assert again.running and not session.running
            assert any("lost" in line and "keeper died" in line for line in registry.list_warnings())
            await asyncio.to_thread(shell.wait, 10)  # its terminal hung up
            await registry.kill("lost")
        finally:
            await registry.stop()

    run(work())
    assert not places.keeper_socket.exists()


SERVER = """
import asyncio, sys, uvloop
from wsh.session.registry import SessionRegistry, terminal_limits
from wsh.wire.system.place import find_places
from wsh.wire.setting import load
from wsh.session.wait.wait import WaitSpec
async def main():
    registry = await SessionRegistry.open(find_places(), load(None, {}, {"journal.snapshot_bytes": 65536, "journal.snapshot_interval_s": 0.1}))
    print("ready", flush=True)
    await asyncio.Event().wait()
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


def _until_written(journal: Journal, end: int) -> None:
    """The keeper puts on disk a moment later what it has handed over."""
    wait_until(lambda: journal.end >= end, f"{end} bytes in the journal", seen=lambda: journal.end)


def _until_resized(folder: Path) -> None:
    wait_until(lambda: (30, 90) in [size[1:] for size in read_resizes(folder, 0)], "the size in the journal")


@pytest.mark.torture
def test_killing_the_server_again_and_again_loses_and_doubles_nothing(places: Places, torture: bool) -> None:
    rounds = 500 if torture else 6
    count = (100 if torture else 130) * rounds

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, env=dict(os.environ))
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        return process

    async def prepare() -> None:
        registry = await SessionRegistry.open(places, settings_of())
        for kind in KINDS:
            argv = (sys.executable, printer.__file__, kind, str(count), "0.005")
            await registry.open_session(SessionSpec(name=kind, argv=argv))
        await registry.aclose()

    async def check() -> None:
        registry = await SessionRegistry.open(places, settings_of())
        try:
            for kind in KINDS:
                session = registry.get_session(kind)
                await session.wait(WaitSpec(exit=True, max_wait_ms=300_000))
                expected = printer.printed(kind, count)
                journal = Journal(session.folder.path)
                await asyncio.to_thread(_until_written, journal, session.generation)
                assert journal.oldest == 0, kind
                recorded, _ = journal.read_bytes(0, journal.end)
                tail = recorded[len(expected) :] if kind == "queries" else b""
                assert recorded == expected + tail, kind
                assert session.output.lost_bytes == 0 and session.generation == len(recorded), kind
                # Nobody was ever killed under this one.
                whole = Terminal(session.rows, session.cols, terminal_limits(registry.settings))
                whole.feed(recorded)
                assert session.terminal.screen(styled=True).lines == whole.screen(styled=True).lines, kind
                assert session.terminal.screen(styled=True).cursor == whole.screen(styled=True).cursor, kind
                ours, theirs = (
                    terminal.scrollback(limit=20_000, styled=True).lines for terminal in (session.terminal, whole)
                )
                assert len(ours) == len(theirs) and ours == theirs, kind
            answers = whole_text(registry.get_session("queries")).splitlines()
            words = next(line for line in answers if line.startswith("answered ")).split()
            assert int(words[1]) > 0, "queries were answered"
            assert int(words[3]) == 1, "and none of them twice"
        finally:
            await registry.stop()

    run(prepare())
    chance = random.Random(7)
    for _ in range(rounds):
        process = start()
        time.sleep(chance.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    run(check())


def test_nothing_of_a_stopped_registry_is_left(places: Places) -> None:
    async def work() -> int:
        registry = await SessionRegistry.open(places, settings_of())
        session = await open_quiet(registry)
        pid = session.pid
        await registry.stop()
        return pid

    pid = run(work())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert list(places.sessions.iterdir()) == []
    assert list(places.runtime.iterdir()) == []
