"""Who is there: a node holds its name as long as it beats.

A lease is a key that NATS lets expire. A second node of the same name finds the key written by another start, beat after beat, and is
refused; one that was only left behind by a start that was killed expires within the lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from wsh.host.fleet.connection import ConnectionLost, FleetConnection, RevisionTaken
from wsh.host.fleet.subject import to_token

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject


class NodeNameTaken(Exception):
    """Another node has the name."""

    def __init__(self, name: str, fleet: str) -> None:
        super().__init__(
            f"another node joined the fleet {fleet!r} as {name!r} and is there now; "
            "give each machine credentials of its own with `wsh fleet invite`"
        )


class Lease:
    """One start's hold on a name."""

    def __init__(
        self, connection: FleetConnection, describe: Callable[[], JsonObject], *, lease_s: float, beat_s: float
    ) -> None:
        self._connection = connection
        self._describe = describe
        self._lease_s = lease_s
        self._beat_s = beat_s
        self._revision = 0

    async def claim(self) -> None:
        """Raises NodeNameTaken if another holds the name for longer than a lease lasts without a beat."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._lease_s + 2 * self._beat_s
        while True:
            try:
                self._revision = await self._put(0)
                return
            except RevisionTaken:
                if await self._take_back():
                    return
                if loop.time() >= until:
                    raise NodeNameTaken(self._connection.node, self._connection.credential.fleet) from None
            await asyncio.sleep(0.2)

    async def _take_back(self) -> bool:
        """True if the key was given up, written by this start whose confirmation was lost, or holds what no node wrote.

        NATS sends its confirmations wherever a client asks for them, so that another node can have one put here.
        """
        found = await self._connection.get("nodes", to_token(self._connection.node))
        if found is None:
            return False
        revision, value = found
        holder = None if value is None else value.get("instance")
        if holder is not None and holder != self._describe()["instance"]:
            return False
        try:
            self._revision = await self._put(revision)
        except RevisionTaken:
            return False
        return True

    async def beat(self) -> None:
        """Until the connection or the name is lost. Raises ConnectionLost, or NodeNameTaken."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(self._beat_s)
            try:
                self._revision = await self._put(self._revision)
                last = loop.time()
            except RevisionTaken:
                # It expired while NATS or we were too slow; unless somebody else has it now, it is ours again.
                await self.claim()
                last = loop.time()
            except ConnectionLost:
                if loop.time() - last > self._lease_s:
                    raise

    async def give_up(self) -> None:
        """Let others see at once that the node has left."""
        try:
            await self._connection.put("nodes", to_token(self._connection.node), None, self._revision)
        except (RevisionTaken, ConnectionLost):
            pass

    async def _put(self, last: int) -> int:
        return await self._connection.put("nodes", to_token(self._connection.node), self._describe(), last)
