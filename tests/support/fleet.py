"""A small fleet for tests: a real NATS server in a folder of its own, and nodes without a server around them."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.waiting import until
from wsh.host.carrier import (
    ForwardedAnswer,
    ForwardedCall,
    ForwardedCaller,
    HostState,
    ProgressListener,
    StreamRequest,
)
from wsh.host.ending import end_tasks
from wsh.host.fleet.carrier import NatsCarrier
from wsh.host.fleet.credential import NodeCredential, NodeRole
from wsh.host.fleet.deploy import FleetDeployment, find_program, set_up, start_nats
from wsh.host.fleet.node import FleetNode, FleetOptions, NodeServer
from wsh.host.registry import HostRegistry
from wsh.wire.json.object import JsonObject

OWNER = ForwardedCaller("owner", "ann", "whatever")
DEBIAN_PROGRAM = "/usr/sbin/nats-server"


class NatsForTest:
    """A NATS server that can be killed and started again, with its streams kept."""

    def __init__(self, folder: Path, program: str | None = None) -> None:
        self.deployment: FleetDeployment = set_up(folder / "nats", "test", "127.0.0.1", 0)
        self.program = program or find_program()
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self.process = await start_nats(self.deployment, self.program)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def invite(self, name: str, role: NodeRole = "owner", tags: tuple[str, ...] = ()) -> NodeCredential:
        credential = self.deployment.invite(name, role, tags)
        self.deployment.write()
        self.deployment.reload()
        return credential


@contextlib.asynccontextmanager
async def open_nats(folder: Path, program: str | None = None) -> AsyncIterator[NatsForTest]:
    nats = NatsForTest(folder, program)
    await nats.start()
    try:
        yield nats
    finally:
        nats.kill()


class EchoStream:
    """A stream that gives back what it gets, and closes on "close"."""

    def __init__(self, request: StreamRequest) -> None:
        self.request = request
        self.closed = (1000, "asked to")
        self._came: asyncio.Queue[str | bytes] = asyncio.Queue()
        self.sent = 0

    async def send(self, message: str | bytes) -> None:
        await self._came.put(message)

    async def receive(self) -> str | bytes | None:
        message = await self._came.get()
        if message == "flood":
            await self._came.put(message)
            self.sent += 1
            return b"x" * 10_000
        return None if message == "close" else message

    async def aclose(self) -> None:
        pass


def make_info(name: str, **facts: object) -> JsonObject:
    """SessionInfo of one that runs."""
    texts = {"server": "there", "command": "sleep 1000", "state": "running", "title": "", "cwd": "/", "journal": "ok"}
    numbers = {"pid": 1, "rows": 24, "cols": 80, "clients": 0, "last_activity_ms": 0, "exit_code": None}
    return {"name": name, "running": True, "tags": [], **texts, **numbers, **facts}


@dataclass
class NodeForTest:
    """A node whose server notes calls and answers them."""

    credential: NodeCredential
    sessions: dict[str, JsonObject] = field(default_factory=dict)
    calls: list[ForwardedCall] = field(default_factory=list)
    streams: list[EchoStream] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    beats: int = 0
    hosts: HostRegistry = field(default_factory=HostRegistry)
    options: FleetOptions = field(default_factory=lambda: FleetOptions("", linger_s=600))

    def __post_init__(self) -> None:
        server = NodeServer(self._make, self._open_stream, self)
        options = replace(self.options, url=self.credential.url)
        self.node = FleetNode(self.credential, options, server, self.hosts)
        self.node.start()

    async def wait_joined(self) -> None:
        await until(lambda: self.node.problem is None, "the node to join", seen=lambda: self.node.problem)

    def list_names(self) -> list[str]:
        self.beats += 1  # each beat says how many there are
        return list(self.sessions)

    async def describe_session(self, name: str) -> JsonObject | None:
        return self.sessions.get(name)

    def add_session(self, name: str, **facts: object) -> None:
        self.sessions[name] = make_info(name, **facts)
        self.node.sessions.mark(name)

    async def _make(self, call: ForwardedCall, on_progress: ProgressListener) -> ForwardedAnswer:
        self.calls.append(call)
        on_progress({"message": "begun", "stream": "info", "phase": "progress"})
        if call.operation == "wait":
            await self.release.wait()
        if call.operation == "large":
            return ForwardedAnswer(result="x" * 1_000_000)
        return ForwardedAnswer(result={"node": self.credential.name, "params": dict(call.params)})

    async def _open_stream(self, request: StreamRequest) -> EchoStream:
        self.streams.append(EchoStream(request))
        return self.streams[-1]

    def carrier(self, name: str) -> NatsCarrier:
        carrier = self.hosts.get_carrier(name)
        assert isinstance(carrier, NatsCarrier)
        return carrier

    def state(self, name: str) -> HostState | None:
        return self.carrier(name).state if name in self.hosts else None

    async def see(self, name: str, *, online: bool = True) -> NatsCarrier:
        """Wait until that node is seen here, or seen as gone."""

        async def is_seen() -> bool:
            await self.hosts.refresh()
            state = self.state(name)
            return state is not None and state.online is online

        await until(is_seen, f"{name} to be {'there' if online else 'gone'}", seen=lambda: self.state(name))
        return self.carrier(name)

    async def die(self) -> None:
        """End at once, as a killed process does: the lease is not given up."""
        assert self.node._task is not None
        connection = self.node._connection
        if connection is not None:
            await connection.client.close()
        await end_tasks([self.node._task])  # a single cancellation may be lost


@contextlib.asynccontextmanager
async def open_nodes(*credentials: NodeCredential) -> AsyncIterator[list[NodeForTest]]:
    nodes = [NodeForTest(credential) for credential in credentials]
    try:
        for one in nodes:
            await one.wait_joined()
        yield nodes
    finally:
        for one in nodes:
            await one.node.aclose()


def make_call(operation: str, id: str, *, deadline_s: float = 60.0, **params: object) -> ForwardedCall:
    return ForwardedCall(f"call-{id:0>8}", operation, params, None, OWNER, deadline_s)
