"""Nodes, NATS and their connections die again and again, under calls, events and answers: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.support.fleet import DEBIAN_PROGRAM, NatsForTest, NodeForTest, make_call, open_nats
from tests.support.waiting import until
from wsh.host.fleet.connection import ConnectionLost, RevisionTaken
from wsh.host.fleet.deploy import connect_as_admin, find_program
from wsh.wire.error import HostUnreachable

pytestmark = pytest.mark.accept


class Campaign:
    """Ann calls bob. Ann lives on; everything else may die at any moment."""

    def __init__(self, server: NatsForTest, seed: int) -> None:
        self.server = server
        self.random = random.Random(seed)
        self.credentials = server.invite("ann"), server.invite("bob")
        self.ann, self.bob = map(NodeForTest, self.credentials)
        self.dead: list[NodeForTest] = []
        self.answered: list[str] = []
        self.not_made: list[str] = []
        self.unknown: list[str] = []
        self.events = 0
        self.winners: Counter[str] = Counter()
        self.over = False

    @property
    def made(self) -> Counter[str]:
        """How often each call was made, by all starts of bob."""
        return Counter(str(call.params["n"]) for node in (*self.dead, self.bob) for call in node.calls)

    async def call_always(self, worker: int) -> None:
        number = 0
        while not self.over:
            number += 1
            id = f"{worker}-{number}"
            self.ann.node.events.add(f"event-{id}", {"n": id})
            self.events += 1
            try:
                carrier = self.ann.carrier("bob") if "bob" in self.ann.hosts else None
                if carrier is not None:
                    await carrier.call(make_call("echo", id, n=id))
                    self.answered.append(id)
            except HostUnreachable as problem:
                (self.not_made if problem.facts["made"] == "no" else self.unknown).append(id)
            await asyncio.sleep(0.01)

    async def answer_always(self) -> None:
        """Two answers to each request at once."""
        number = 0
        while not self.over:
            number += 1
            await asyncio.gather(self.answer(f"bob.{number}"), self.answer(f"bob.{number}"))
            await asyncio.sleep(0.05)

    async def answer(self, key: str) -> None:
        connection = self.bob.node.connection
        if connection is None:
            return
        try:
            await connection.create("approvals", key, {"by": "ann"})
            self.winners[key] += 1
        except (ConnectionLost, RevisionTaken):
            pass

    async def break_something(self) -> None:
        match self.random.choice(("nats", "node", "cut bob", "cut ann")):
            case "nats":
                self.server.kill()
                await asyncio.sleep(self.random.uniform(0, 0.2))
                await self.server.start()
            case "node":
                await self.bob.die()
                self.dead.append(self.bob)
                self.bob = NodeForTest(self.credentials[1])
            case "cut bob" if self.bob.node.connection is not None:
                await self.bob.node.connection.client.close()
            case "cut ann" if self.ann.node.connection is not None:
                await self.ann.node.connection.client.close()
        await asyncio.sleep(self.random.uniform(0, 0.2))

    def has_answered(self, more_than: int) -> bool:
        return len(self.answered) > more_than

    async def run(self, faults: int) -> None:
        work = [asyncio.ensure_future(self.call_always(worker)) for worker in range(4)]
        work.append(asyncio.ensure_future(self.answer_always()))
        try:
            for fault in range(faults):
                await self.break_something()
                if fault % 5 == 4:  # a while in which all is well, so that calls are under way
                    done = len(self.answered)
                    await until(partial(self.has_answered, done), f"calls after {fault} faults", seen=self.tell)
        finally:
            self.over = True
            ended = await asyncio.gather(*work, return_exceptions=True)
        assert [one for one in ended if one is not None] == []

    def tell(self) -> str:
        return f"ann: {self.ann.node.problem}, bob: {self.bob.node.problem}, {self.ann.state('bob')}"

    async def aclose(self) -> None:
        for node in (self.ann, self.bob, *self.dead):
            await node.node.aclose()


@pytest.mark.torture
@pytest.mark.parametrize("program", [find_program(), DEBIAN_PROGRAM], ids=["newest", "debian"])
async def test_faults_lose_nothing_and_make_nothing_twice(tmp_path: Path, program: str, torture: bool) -> None:
    """Under torture a thousand."""

    async with open_nats(tmp_path, program) as server:
        campaign = Campaign(server, seed=24)
        try:
            await campaign.run(1000 if torture else 20)
            made = campaign.made
            assert len(campaign.answered) > 4, campaign.tell()
            assert {id: n for id, n in made.items() if n > 1} == {}, "made twice"
            assert set(campaign.answered) <= set(made), "answered and not made"
            assert not set(campaign.not_made) & set(made), "said not to be made, and made"
            assert not [key for key, n in campaign.winners.items() if n > 1], "answered twice"
            await until(lambda: not campaign.ann.node.events._waiting, "all events to arrive", seen=campaign.tell)
            async with connect_as_admin(server.deployment) as admin:
                info = await admin.jetstream().stream_info(server.deployment.names.event_stream)
            assert info.state.messages == campaign.events
        finally:
            await campaign.aclose()
