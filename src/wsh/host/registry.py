"""Which hosts there are, what carries to them, and what each told last of its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from wsh.host.address import check_host_name
from wsh.host.carrier import Carrier, HostState
from wsh.wire.error import HostNotFound

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

NewsListener = Callable[[str, "JsonObject"], None]
"""Gets the host's name and what it tells."""


class HostRegistry:
    def __init__(self) -> None:
        self._carriers: dict[str, Carrier] = {}
        self._stops: dict[str, Callable[[], None]] = {}
        self._listeners: list[NewsListener] = []
        self.here = ("", "")
        """The id of this server, and the name of its machine: a host may lead back to it."""
        self.told_sessions: dict[str, Callable[[], list[JsonObject]]] = {}
        """Of hosts that tell of their sessions by themselves: SessionInfo of all, as they are."""
        self.sources: list[Callable[[], Awaitable[None]]] = []
        """Where hosts come from that nobody added here; each brings what is known of its hosts up to date."""
        self.last_sessions: dict[str, list[JsonObject]] = {}
        """SessionInfo of each host's sessions, as they were when the host was last asked."""
        self.remembered: list[Callable[[], None]] = []
        """Who is told after `remember`."""

    def add(self, carrier: Carrier) -> None:
        """From now on the host can be called. The registry closes the carrier."""
        name = check_host_name(carrier.state.name)
        assert name not in self._carriers, f"host {name} has a carrier already"
        self._carriers[name] = carrier
        self._stops[name] = carrier.listen(lambda news: self._tell(name, news))
        self._tell(name, {"event": "host_added"})

    async def remove(self, name: str) -> None:
        await self.take_out(name).aclose()

    def take_out(self, name: str) -> Carrier:
        """From now on the host cannot be called, and another may have its name. The carrier is the caller's to close."""
        carrier = self.get_carrier(name)
        del self._carriers[name]
        self._stops.pop(name)()
        self.last_sessions.pop(name, None)
        self._tell(name, {"event": "host_removed"})
        return carrier

    def get_carrier(self, name: str) -> Carrier:
        carrier = self._carriers.get(name)
        if carrier is None:
            raise HostNotFound(name, sorted(self._carriers))
        return carrier

    def find_carrier(self, name: str) -> Carrier | None:
        """None once the host was removed; another one after it was added again."""
        return self._carriers.get(name)

    def remember(self, sessions: dict[str, list[JsonObject]]) -> None:
        """What hosts that were asked just now told of their sessions."""
        self.last_sessions |= sessions
        for tell in self.remembered:
            tell()

    async def refresh(self) -> None:
        """Before hosts are listed or asked."""
        await asyncio.gather(*(refresh() for refresh in self.sources))

    def list_hosts(self) -> list[HostState]:
        """By name. Of several that lead to the same server, those behind the first that is in reach say so in `same_as`."""
        known = dict([self.here])
        states = {name: self._carriers[name].state for name in sorted(self._carriers)}
        for name in sorted(states, key=lambda name: not states[name].online):
            state = states[name]
            if state.server_id:
                first = known.setdefault(state.server_id, name)
                states[name] = state if first == name else replace(state, same_as=first)
        return list(states.values())

    def __len__(self) -> int:
        return len(self._carriers)

    def __contains__(self, name: str) -> bool:
        return name in self._carriers

    def listen(self, listener: NewsListener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, name: str, news: JsonObject) -> None:
        for listener in list(self._listeners):
            listener(name, news)

    async def aclose(self) -> None:
        for stop in self._stops.values():
            stop()
        carriers = list(self._carriers.values())
        self._carriers.clear()
        self._stops.clear()
        await asyncio.gather(*(carrier.aclose() for carrier in carriers))
