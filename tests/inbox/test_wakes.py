"""The file of lines that wait to be typed, where two changes of it meet."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from tests.support.session.running import open_quiet, run_with_registry
from tests.support.waiting import until
from wsh.inbox.wake import Wakes
from wsh.session.event import SERVER
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.wire.system.place import Places


def test_a_line_that_is_taken_back_while_it_becomes_due_stays_taken_back(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    async def work(registry: SessionRegistry) -> None:
        # A program that does not read, so that the line has to wait.
        agent = await registry.open_session(SessionSpec(command="sleep 1000"))
        build = await open_quiet(registry, "sh")
        wakes = Wakes(places.wakes, registry, 10, 3600)
        write = wakes._write

        def hold(text: bytes) -> None:
            is_due = json.loads(text)[0]["state"] == "due"
            if is_due:
                begun.set()
                go_on.wait(60)
            write(text)
            if is_due:
                ended.set()

        monkeypatch.setattr(wakes, "_write", hold)
        wake = await wakes.set(agent, build, "go on")
        await build.input.send(b"exit\r", SERVER)
        await until(begun.is_set, "it to be written as due")
        cancelling = asyncio.ensure_future(wakes.cancel(wake.id))
        await asyncio.sleep(0.1)
        go_on.set()
        assert (await cancelling).state == "dropped"
        await until(ended.is_set, "the end of the first write")
        assert [one["state"] for one in json.loads(places.wakes.read_bytes())] == ["dropped"]
        await wakes.aclose()

    run_with_registry(places, work)
