"""Which nodes and sessions the fleet has, as NATS's buckets say.

Facts of nodes are always followed: they seldom change. Beats and sessions are followed only while somebody looks, and for a
while after, so that a node on which nobody looks costs next to nothing. Before NATS 2.11 nobody is told that a lease expired, so a node
counts as gone when its beats have been missing for a lease, whatever the server's version.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsh.host.ending import end_tasks
from wsh.host.fleet.connection import ConnectionLost, FleetConnection, Watch
from wsh.host.fleet.subject import from_token
from wsh.host.fleet.tell import read_told, refresh_age

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.fleet")

_CAUGHT_UP_S = 10.0
_CREATED = ("name", "pid", "command", "rows", "cols", "clients", "tags", "server")
_LOOK_S = 0.25
"""Between two looks for beats that are missing."""


@dataclass
class Member:
    """One node, as far as it is known here."""

    name: str
    facts: JsonObject = field(default_factory=dict)
    beat: JsonObject = field(default_factory=dict)
    """What its last beat said: load and number of sessions."""
    silent_s: float = math.inf
    """For how long beats were missing while this server looked for them."""
    online: bool = False
    since: float = field(default_factory=time.time)
    last_seen: float | None = None
    sessions: dict[str, JsonObject] = field(default_factory=dict)

    @property
    def instance(self) -> str:
        return str(self.beat.get("instance") or self.facts.get("instance") or "")

    @property
    def start(self) -> str:
        """Which start of its server it is; a connection to NATS is an instance of it."""
        return str(self.beat.get("start") or self.facts.get("start") or "")

    @property
    def tags(self) -> list[str]:
        tags = self.facts.get("tags")
        return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


class FleetDirectory:
    """`told` is called with a member's name and its news: {"event": "host_changed"} or that of a session."""

    def __init__(
        self, *, own_name: str, lease_s: float, linger_s: float, told: Callable[[str, JsonObject], None]
    ) -> None:
        self.members: dict[str, Member] = {}
        self._own_name = own_name
        self._lease_s = lease_s
        self._linger_s = linger_s
        self._told = told
        self._connection: FleetConnection | None = None
        self._wanted_until = 0.0
        self._holds = 0
        self._attending: asyncio.Task[None] | None = None
        self._known = asyncio.Event()
        """Set while all nodes are known: what is told of another one is left out."""
        self._current = asyncio.Event()

    @property
    def is_current(self) -> bool:
        """True while beats and sessions are followed and everything has been told."""
        return self._current.is_set()

    async def follow(self, connection: FleetConnection) -> None:
        """Follow this connection until it ends. Raises ConnectionLost."""
        seen: set[str] = set()

        def on_fact(key: str, revision: int, value: JsonObject | None) -> None:
            seen.add(key)
            self._on_fact(from_token(key), value)

        watch = None
        self._connection = connection
        try:
            watch = await connection.watch("members", ">", on_fact)
            await watch.wait_caught_up()
            for name in self.members.keys() - {from_token(key) for key in seen}:
                self._on_fact(name, None)
            self._known.set()
            self._attend()
            await connection.ended.wait()
        finally:
            # What must happen comes before the first await: the end of the connection may cancel this task here.
            self._connection = None
            self._known.clear()
            self._current.clear()
            for member in self.members.values():
                self._set_online(member, False)
            attending, self._attending = self._attending, None
            if attending is not None:
                await end_tasks([attending])
            if watch is not None:
                await watch.aclose()
        raise ConnectionLost("the connection to NATS ended")

    async def look(self) -> bool:
        """Have beats and sessions followed from now on. Waits until all is known; False where NATS is away, or goes away."""
        release = self.hold()
        current = asyncio.ensure_future(self._current.wait())
        try:
            if self._attending is not None:
                await asyncio.wait(
                    {current, self._attending}, timeout=_CAUGHT_UP_S, return_when=asyncio.FIRST_COMPLETED
                )
            return self._current.is_set()
        finally:
            current.cancel()
            release()

    def hold(self) -> Callable[[], None]:
        """Keep looking until the returned function is called."""
        self._holds += 1
        self._attend()
        released = False

        def release() -> None:
            nonlocal released
            if not released:
                released = True
                self._holds -= 1
                self._wanted_until = time.monotonic() + self._linger_s

        return release

    @property
    def _wanted(self) -> bool:
        return self._holds > 0 or time.monotonic() < self._wanted_until

    def _attend(self) -> None:
        if self._connection is not None and self._wanted and (self._attending is None or self._attending.done()):
            self._attending = asyncio.ensure_future(self._follow_closely(self._connection))

    async def _follow_closely(self, connection: FleetConnection) -> None:
        """Beats and sessions, until nobody looks any more."""
        await self._known.wait()
        while self._wanted and not connection.ended.is_set():  # somebody may look again while the watches are closed
            await self._follow_once(connection)

    async def _follow_once(self, connection: FleetConnection) -> None:
        watches: list[Watch] = []
        told: set[tuple[str, str]] = set()

        def on_session(key: str, revision: int, value: JsonObject | None) -> None:
            node, _, session = key.partition(".")
            if not self._current.is_set():
                told.add((from_token(node), from_token(session)))
            self._on_session(from_token(node), from_token(session), value)

        for member in self.members.values():
            member.silent_s = math.inf  # until a beat is heard by this following
        try:
            watches.append(await connection.watch("sessions", ">", on_session))
            watches.append(await connection.watch("nodes", ">", self._on_beat))
            for watch in watches:
                await watch.wait_caught_up()
            for member in self.members.values():
                for session in [name for name in member.sessions if (member.name, name) not in told]:
                    self._on_session(member.name, session, None)
            told.clear()
            self._current.set()
            passed = 0.0
            while self._wanted:
                self._count_silence(passed)
                before = time.monotonic()
                await asyncio.sleep(_LOOK_S)
                # While this process had no processor, the beats of the others came and could not be read.
                passed = min(time.monotonic() - before, 2 * _LOOK_S)
        except ConnectionLost:
            connection.ended.set()
        finally:
            self._current.clear()
            for watch in watches:
                await watch.aclose()

    def _count_silence(self, passed_s: float) -> None:
        for member in self.members.values():
            member.silent_s += passed_s
            if member.online and member.silent_s > self._lease_s:
                self._set_online(member, False)

    def _on_fact(self, name: str, value: JsonObject | None) -> None:
        if name == self._own_name:
            return
        if value is None:
            if self.members.pop(name, None) is not None:
                self._told(name, {"event": "host_removed"})
            return
        if not isinstance(value.get("instance"), str):
            log.warning("what is told of the node %s was not told by a node; it is left out", name)
            return
        member = self.members.get(name)
        if member is None:
            member = self.members[name] = Member(name, value)
            self._told(name, {"event": "host_added"})
        else:
            member.facts = value
            self._told(name, {"event": "host_changed"})

    def _on_beat(self, key: str, revision: int, value: JsonObject | None) -> None:
        member = self.members.get(from_token(key))
        if member is None:
            return
        if value is None:
            self._set_online(member, False)
            return
        if not isinstance(value.get("instance"), str):
            return
        member.beat = value
        member.silent_s = 0.0
        member.last_seen = time.time()
        self._set_online(member, True)

    def _set_online(self, member: Member, online: bool) -> None:
        if member.online != online:
            member.online = online
            member.since = time.time()
            self._told(member.name, {"event": "host_changed"})

    def _on_session(self, node: str, name: str, value: JsonObject | None) -> None:
        member = self.members.get(node)
        if member is None:
            return
        before = member.sessions.get(name)
        if value is not None and (value := read_told(name, value)) is None:
            log.warning("what is told of the session %r of the node %s cannot be; it is left out", name, node)
            return
        if value is None:
            if member.sessions.pop(name, None) is not None:
                self._told(
                    node, _make("session_destroyed", name, {"name": name}, exit_code=before and before["exit_code"])
                )
            return
        old = value.pop("renamed_from", None)
        if before is None and old in member.sessions and self.is_current:
            # In its place, as the list has the order of creation.
            known = member.sessions.items()
            member.sessions = {name if key == old else key: value if key == old else kept for key, kept in known}
            names: JsonObject = {"old_name": old, "new_name": name}
            self._told(node, _make("session_renamed", name, names, **names))
            return
        member.sessions[name] = value
        if before is None:
            params = {key: value[key] for key in _CREATED}
            self._told(node, _make("session_created", name, params, info=refresh_age(value)))
            return
        if before["tags"] != value["tags"]:
            tags, was = list(value["tags"]), list(before["tags"])
            body = {
                "tags": tags,
                "added": [tag for tag in tags if tag not in was],
                "removed": [tag for tag in was if tag not in tags],
            }
            self._told(node, _make("session_tags_changed", name, {"name": name, "tags": tags}, **body))
        if before["running"] and not value["running"]:
            self._told(node, {"event": "exit", "session": name, "exit_code": value["exit_code"]})
        else:
            self._told(node, {"event": "session_changed", "name": name, "info": refresh_age(value)})


def _make(event: str, name: str, params: JsonObject, **facts: object) -> JsonObject:
    """As the server of the session tells it on `/ws/json`."""
    return {"event": event, "session": name, "name": name, **facts, "params": params}
