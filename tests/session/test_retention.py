"""Ended sessions are kept for a time and up to a size, and what is beyond goes with all its files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.session.running import settings_of
from tests.support.waiting import until
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.error import SessionNotFound
from wsh.wire.system.moment import Moment, read_moment
from wsh.wire.system.place import Places


@asynccontextmanager
async def opened(places: Places, **settings: object) -> AsyncIterator[SessionRegistry]:
    registry = await SessionRegistry.open(places, settings_of(**settings))
    try:
        yield registry
    finally:
        await registry.stop()


async def end_one(registry: SessionRegistry, name: str, ago_s: float, size: int = 1000) -> Path:
    """A session that has printed `size` bytes and ended so long ago; its folder."""
    session = await registry.open_session(SessionSpec(command=f"head -c {size} /dev/zero", name=name))
    await session.wait(WaitSpec(exit=True, max_wait_ms=60_000))
    await until(lambda: session.child is None, "the session to be released", seen=lambda: session.child)
    now = read_moment()
    session.end = Moment(now.wall - ago_s, now.boot, now.up - ago_s)
    assert session.folder.size_bytes() >= size
    return session.folder.path


def names(registry: SessionRegistry) -> list[str]:
    return sorted(session.name for session in registry.list_sessions())


async def test_what_ended_longer_ago_than_the_setting_says_goes_with_its_files(places: Places) -> None:
    async with opened(places, session__retention_s=3600) as registry:
        old = await end_one(registry, "old", ago_s=3700)
        young = await end_one(registry, "young", ago_s=3500)
        await registry._housekeeping._retain()
        assert names(registry) == ["young"]
        assert not old.exists() and young.exists()
        with pytest.raises(SessionNotFound):
            registry.get_session("old")


async def test_beyond_the_size_the_oldest_go_first(places: Places) -> None:
    async with opened(places, session__retention_bytes=250_000) as registry:
        folders = {
            name: await end_one(registry, name, ago_s, size=100_000)
            for name, ago_s in (("middle", 20), ("oldest", 30), ("newest", 10))
        }
        await registry._housekeeping._retain()
        assert names(registry) == ["middle", "newest"]
        assert {name for name, folder in folders.items() if folder.exists()} == {"middle", "newest"}


async def test_a_session_that_runs_is_never_taken(places: Places) -> None:
    async with opened(places, session__retention_s=0, session__retention_bytes=0) as registry:
        running: Session = await registry.open_session(SessionSpec(command="cat", name="running"))
        gone = await end_one(registry, "gone", ago_s=1)
        await registry._housekeeping._retain()
        assert names(registry) == ["running"] and running.running
        assert running.folder.path.exists() and not gone.exists()


async def test_retention_goes_on_by_itself_after_a_restart(places: Places) -> None:
    registry = await SessionRegistry.open(places, settings_of(session__retention_s=3600))
    folder = await end_one(registry, "old", ago_s=0)
    await registry.aclose()
    async with opened(places, session__retention_s=0) as again:
        await until(lambda: not folder.exists(), "the folder of the ended session to go")
        assert names(again) == []
