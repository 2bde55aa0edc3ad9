"""What a connection holds at other machines (captured keys): a machine is told when the connection has ended, so that it ends there, too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from wsh.wire.error import HostUnreachable, WshError
from wsh.wire.system.task_set import TaskSet

if TYPE_CHECKING:
    from wsh.operation.context import Rooms
    from wsh.wire.caller import Caller
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.host")


class FarLeases:
    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._held: dict[str, tuple[Caller, set[str]]] = {}
        self._telling = TaskSet()

    def note(self, caller: Caller, host: str) -> None:
        """The connection of `caller` holds something at `host` from now on, or is about to."""
        self._held.setdefault(caller.id, (caller, set()))[1].add(host)

    def end(self, owner: str) -> None:
        """The connection of `owner` has ended. A host that is away is told when it is back."""
        held = self._held.pop(owner, None)
        if held is not None:
            for host in held[1]:
                self._telling.start(self._tell(held[0], host))

    async def _tell(self, caller: Caller, host: str) -> None:
        from wsh.operation.host import leave_host
        from wsh.operation.operation import NOTHING, OperationCall

        hosts = self._rooms.hosts
        carrier = hosts.find_carrier(host)
        changed = asyncio.Event()

        def on_news(name: str, news: JsonObject) -> None:
            if name == host and str(news["event"]).startswith("host_"):
                changed.set()

        stop = hosts.listen(on_news)
        try:
            while carrier is not None and hosts.find_carrier(host) is carrier:
                changed.clear()
                try:
                    await OperationCall(leave_host, NOTHING, caller, host=host).make(self._rooms)
                    return
                except HostUnreachable:
                    await changed.wait()
        except WshError as problem:
            log.warning("host %s was not told that %s has gone: %s", host, caller.name, problem)
        finally:
            stop()

    async def aclose(self) -> None:
        """Waits for hosts that are told now, as long as a list waits for a host."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._rooms.settings.get_int("hosts.list_timeout_ms") / 1000):
                await self._telling.wait()
        await self._telling.aclose()
