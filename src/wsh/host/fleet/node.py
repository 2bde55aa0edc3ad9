"""This server as a node of a fleet: joined while NATS can be reached, alone otherwise, and it says which."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wsh.host.carrier import PROTOCOL, ForwardedAnswer, ForwardedCall, ProgressListener, Stream, StreamRequest
from wsh.host.ending import end_tasks
from wsh.host.fleet.carrier import NatsCarrier
from wsh.host.fleet.connection import ConnectionLost, FleetConnection, open_connection
from wsh.host.fleet.credential import NodeCredential
from wsh.host.fleet.directory import FleetDirectory, Member
from wsh.host.fleet.lease import Lease, NodeNameTaken
from wsh.host.fleet.receive import NodeEnd
from wsh.host.fleet.subject import to_token
from wsh.host.fleet.tell import SessionSource, SessionTeller, StreamTeller
from wsh.host.pause import GrowingPause
from wsh.host.receive import Receiver
from wsh.host.registry import HostRegistry
from wsh.wire.system.task_set import TaskSet
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.fleet")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True)
class FleetOptions:
    url: str
    tags: tuple[str, ...] = ()
    lease_s: float = 2.0
    beat_s: float = 0.7
    linger_s: float = 60.0
    max_skew_s: float = 30.0
    max_call_bytes: int = 16 * 1024 * 1024
    max_streams: int = 256
    stream_bytes: int = 256 * 1024
    max_events: int = 10_000
    gone_s: float = 10.0


@dataclass(frozen=True)
class NodeServer:
    """What a node needs of its server."""

    make: Callable[[ForwardedCall, ProgressListener], Awaitable[ForwardedAnswer]]
    open_stream: Callable[[StreamRequest], Awaitable[Stream]]
    sessions: SessionSource


class FleetNode:
    """Joins, stays joined, and keeps a carrier in the registry for every other node."""

    def __init__(
        self, credential: NodeCredential, options: FleetOptions, server: NodeServer, hosts: HostRegistry
    ) -> None:
        self.credential = credential
        self.options = options
        self.sessions = SessionTeller(server.sessions)
        self.events = StreamTeller("event", options.max_events)
        self.audit = StreamTeller("audit", options.max_events)
        self.problem: str | None = "it has not joined yet"
        """Why this node is alone; None while it is joined."""
        self.since = time.time()
        self.directory = FleetDirectory(
            own_name=credential.name, lease_s=options.lease_s, linger_s=options.linger_s, told=self._on_news
        )
        self._server = server
        self._hosts = hosts
        self._start = secrets.token_hex(8)
        self._receiver = Receiver(server.make)
        self._connection: FleetConnection | None = None
        self._joined = asyncio.Event()
        self._carriers: dict[str, NatsCarrier] = {}
        self._task: asyncio.Task[None] | None = None
        self._leaving = TaskSet()

    @property
    def connection(self) -> FleetConnection | None:
        return self._connection

    @property
    def may_call(self) -> bool:
        return self.credential.certificate.role != "serve"

    @property
    def stream_bytes(self) -> int:
        return self.options.stream_bytes

    @property
    def gone_s(self) -> float:
        return self.options.gone_s

    async def wait_connected(self, deadline_s: float) -> FleetConnection | None:
        if self._connection is None and deadline_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline_s):
                    await self._joined.wait()
        return self._connection

    def start(self) -> None:
        self._hosts.sources.append(self._refresh)
        self._task = asyncio.ensure_future(self._run())

    async def _refresh(self) -> None:
        if self.may_call:
            await self.directory.look()
            for name in self.directory.members.keys() - self._carriers.keys():
                self._list_host(name)

    async def aclose(self, *, forget: bool = False) -> None:
        """Leave. With `forget`, the others do not show this node any more."""
        if self._refresh in self._hosts.sources:
            self._hosts.sources.remove(self._refresh)
        connection = self._connection
        if forget and connection is not None:
            with contextlib.suppress(ConnectionLost):  # where NATS does not answer, it is asked no more
                await connection.put("members", to_token(self.credential.name), None)
                for name in self._server.sessions.list_names():
                    await connection.put("sessions", f"{to_token(self.credential.name)}.{to_token(name)}", None)
        if self._task is not None:
            await end_tasks([self._task])
        await self._receiver.aclose()
        for name in list(self._carriers):
            self._drop(name)
        await self._leaving.wait()

    async def _run(self) -> None:
        pause = GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        options = self.options
        while True:
            try:
                async with open_connection(self.credential, options.url, options.max_call_bytes) as connection:
                    await self._serve(connection, pause)
            except ConnectionLost as problem:
                self._set_problem(str(problem))
            except NodeNameTaken as taken:
                self._set_problem(str(taken))
            except Exception:  # a defect of ours must not end the trying; it is logged whole
                log.exception("the fleet could not be joined")
                self._set_problem("an internal error occurred; the log has it")
            await asyncio.sleep(pause.take())

    async def _serve(self, connection: FleetConnection, pause: GrowingPause) -> None:
        """Be a node of the fleet, until something of it is lost."""
        options = self.options
        lease = Lease(
            connection, lambda: self._describe_beat(connection), lease_s=options.lease_s, beat_s=options.beat_s
        )
        await lease.claim()
        end = NodeEnd(
            connection,
            self._receiver,
            self._server.open_stream,
            max_skew_s=options.max_skew_s,
            max_call_bytes=options.max_call_bytes,
            max_streams=options.max_streams,
        )
        await end.open()
        await connection.put("members", to_token(self.credential.name), self._describe_facts(connection))
        self._connection = connection
        self._joined.set()
        self._set_problem(None)
        pause.reset()
        work: list[Coroutine[Any, Any, None]] = [lease.beat(), self.sessions.run(connection), _end_of(connection)]
        work += [self.events.run(connection), self.audit.run(connection)]
        if self.may_call:
            work.append(self.directory.follow(connection))
        tasks = [asyncio.ensure_future(one) for one in work]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            connection.ended.set()
            self._connection = None
            self._joined.clear()
            results = await end_tasks(tasks)
            await end.aclose()
            if not connection.client.is_closed:
                await lease.give_up()
        for problem in results:
            if isinstance(problem, Exception):
                raise problem

    def _set_problem(self, problem: str | None) -> None:
        if problem != self.problem:
            if problem is None:
                log.info("joined the fleet %s as %s", self.credential.fleet, self.credential.name)
            else:
                log.warning("this server works alone: %s", problem)
            if (problem is None) != (self.problem is None):
                self.since = time.time()
        self.problem = problem

    def _describe_facts(self, connection: FleetConnection) -> JsonObject:
        return {
            "version": VERSION,
            "protocol": PROTOCOL,
            "tags": self._list_tags(),
            "role": self.credential.certificate.role,
            "instance": connection.sealer.instance,
            "start": self._start,
            "joined": time.time(),
        }

    def describe_nodes(self) -> list[JsonObject]:
        """FleetNodeInfo of all nodes, this one first."""
        own = self.credential
        here: JsonObject = {
            "name": own.name,
            "online": self.problem is None,
            "here": True,
            "since": self.since,
            "last_seen": None,
            "tags": self._list_tags(),
            "load": _find_load(),
            "sessions": len(self._server.sessions.list_names()),
            "version": VERSION,
            "role": own.certificate.role,
        }
        return [here, *(_describe_member(self.directory.members[name]) for name in sorted(self.directory.members))]

    def _list_tags(self) -> list[str]:
        return sorted({*self.credential.certificate.tags, *self.options.tags})

    def _describe_beat(self, connection: FleetConnection) -> JsonObject:
        return {
            "instance": connection.sealer.instance,
            "start": self._start,
            "load": _find_load(),
            "sessions": len(self._server.sessions.list_names()),
        }

    def _on_news(self, name: str, news: JsonObject) -> None:
        match news["event"]:
            case "host_added":
                if not self._list_host(name):
                    log.warning("the node %s has the name of a host that was added here, and is left out", name)
            case "host_removed":
                self._drop(name)
            case _:
                if name in self._carriers:
                    self._carriers[name].tell(news)

    def _list_host(self, name: str) -> bool:
        """False while a host that was added here has the name."""
        if name in self._hosts:
            return False
        carrier = self._carriers[name] = NatsCarrier(self, self.directory.members[name])
        self._hosts.told_sessions[name] = carrier.list_sessions
        self._hosts.add(carrier)
        return True

    def _drop(self, name: str) -> None:
        if self._carriers.pop(name, None) is not None and name in self._hosts:
            self._hosts.told_sessions.pop(name, None)
            self._leaving.start(self._hosts.take_out(name).aclose())


def _find_load() -> float:
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


def _describe_member(member: Member) -> JsonObject:
    # Another node may say anything of itself.
    load, sessions = member.beat.get("load"), member.beat.get("sessions", len(member.sessions))
    version, role = member.facts.get("version"), member.facts.get("role")
    return {
        "name": member.name,
        "online": member.online,
        "here": False,
        "since": member.since,
        "last_seen": member.last_seen,
        "tags": member.tags,
        "load": load if isinstance(load, int | float) and math.isfinite(load) else None,
        "sessions": sessions if isinstance(sessions, int) else None,
        "version": version if isinstance(version, str) else None,
        "role": role if isinstance(role, str) else None,
    }


async def _end_of(connection: FleetConnection) -> None:
    await connection.ended.wait()
    raise ConnectionLost("the connection to NATS ended")
