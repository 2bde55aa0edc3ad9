"""What a node knows of the others, where beats, facts and sessions come in the order of the test."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.support.fleet import make_info
from tests.support.waiting import until
from wsh.host.ending import end_tasks
from wsh.host.fleet import directory as module
from wsh.host.fleet.connection import ConnectionLost
from wsh.host.fleet.directory import FleetDirectory
from wsh.host.fleet.tell import refresh_age
from wsh.wire.model.session import SessionInfo

if TYPE_CHECKING:
    from wsh.host.fleet.connection import FleetConnection
    from wsh.wire.json.object import JsonObject


class Watched:
    def __init__(self, nats: Nats) -> None:
        self.caught_up = asyncio.Event()
        self._nats = nats

    async def wait_caught_up(self) -> None:
        await self.caught_up.wait()

    async def aclose(self) -> None:
        await self._nats.closes.wait()


class Nats:
    """A connection whose buckets are as `kept` says when somebody begins to watch them."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.kept: dict[str, dict[str, JsonObject]] = {
            "members": {"bob": {"tags": ["gpu"], "instance": "b1"}},
            "nodes": {"bob": {"load": 0.5, "instance": "b1"}},
            "sessions": {"bob.train": make_info("train")},
        }
        self.listeners: dict[str, Callable[[str, int, JsonObject | None], None]] = {}
        self.watches: dict[str, Watched] = {}
        self.silent: set[str] = set()
        """Buckets of which nothing comes for now."""
        self.answers, self.closes = asyncio.Event(), asyncio.Event()
        self.answers.set()
        self.closes.set()

    async def watch(self, bucket: str, keys: str, listener: Callable[[str, int, JsonObject | None], None]) -> Watched:
        self.listeners[bucket], made = listener, Watched(self)
        self.watches[bucket] = made
        await self.answers.wait()
        if self.ended.is_set():
            raise ConnectionLost("it does not answer")
        if bucket not in self.silent:
            self.tell_all(bucket)
        return made

    def tell_all(self, bucket: str) -> None:
        for key, value in self.kept[bucket].items():
            self.listeners[bucket](key, 1, value)
        self.watches[bucket].caught_up.set()


@asynccontextmanager
async def following(nats: Nats, *, lease_s: float = 60.0, linger_s: float = 60.0) -> AsyncIterator[FleetDirectory]:
    told: list[JsonObject] = []
    made = FleetDirectory(own_name="ann", lease_s=lease_s, linger_s=linger_s, told=lambda name, news: told.append(news))
    task = asyncio.ensure_future(made.follow(cast("FleetConnection", nats)))
    try:
        await until(lambda: "members" in nats.watches)
        yield made
    finally:
        nats.ended.set()
        nats.closes.set()
        nats.answers.set()
        await end_tasks([task])


async def test_nobody_is_out_of_reach_because_this_server_had_no_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    late, looks = 0.0, 0

    def monotonic() -> float:
        nonlocal looks
        looks += 1
        return time.monotonic() + late

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic, time=time.time))
    async with following(Nats(), linger_s=100_000) as directory:
        await until(lambda: "bob" in directory.members)
        assert await directory.look() and directory.members["bob"].online
        late, before = 1000.0, looks
        await until(lambda: looks >= before + 6)
        assert directory.members["bob"].online, "its beats could not be read meanwhile"


async def test_a_look_ends_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CAUGHT_UP_S", 1000.0)
    nats = Nats()
    async with following(nats) as directory:
        await until(lambda: "bob" in directory.members)
        nats.answers.clear()
        looking = asyncio.ensure_future(directory.look())
        await until(lambda: "sessions" in nats.watches)
        nats.ended.set()
        nats.answers.set()
        assert await looking is False


async def test_who_looks_while_a_following_ends_begins_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CAUGHT_UP_S", 1000.0)
    nats = Nats()
    async with following(nats, linger_s=0) as directory:
        await until(lambda: "bob" in directory.members)
        release = directory.hold()
        await until(lambda: directory.is_current)
        nats.closes.clear()
        release()
        await until(lambda: not directory.is_current)
        looking = asyncio.ensure_future(directory.look())
        await asyncio.sleep(0)
        nats.closes.set()
        assert await looking


async def test_one_look_is_enough_where_nothing_lingers() -> None:
    async with following(Nats(), linger_s=0) as directory:
        await until(lambda: "bob" in directory.members)
        assert await directory.look()
        assert directory.members["bob"].online and list(directory.members["bob"].sessions) == ["train"]


async def test_sessions_of_a_node_that_is_told_late_are_not_left_out() -> None:
    nats = Nats()
    nats.silent.add("members")
    async with following(nats) as directory:
        looking = asyncio.ensure_future(directory.look())
        for _ in range(20):
            await asyncio.sleep(0)
        nats.tell_all("members")
        assert await looking
        assert list(directory.members["bob"].sessions) == ["train"]


GARBAGE: list[object] = [None, "text", 7, [1], {"a": 1}, float("nan"), float("inf"), -1]


async def test_a_session_that_cannot_be_one_is_left_out_and_the_others_stay() -> None:
    nats = Nats()
    for number, wrong in enumerate(GARBAGE):
        for field in ("name", "tags", "rows", "state", "command"):
            key = f"bob.x{number}-{field}"
            nats.kept["sessions"][key] = make_info(key.partition(".")[2]) | {field: wrong}
        nats.kept["sessions"][f"bob.age{number}"] = make_info(f"age{number}") | {"active_at": wrong}
    nats.kept["sessions"] |= {"bob.empty": {}, "bob.train2": make_info("train2") | {"new_in_a_later_version": 1}}
    nats.kept["sessions"]["bob.a b"] = make_info("a b")
    async with following(nats) as directory:
        await until(lambda: "bob" in directory.members)
        assert await directory.look()
        shown = [refresh_age(info) for info in directory.members["bob"].sessions.values()]
        assert {"train", "train2"} <= {info["name"] for info in shown}
        assert not {"empty", "a b"} & {info["name"] for info in shown}
        for info in shown:
            SessionInfo.model_validate(info)
            assert json.dumps(info, allow_nan=False)
