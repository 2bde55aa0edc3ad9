"""A door with tools made for a test, served over HTTP and a unix socket by a thread of this process.

The tools are real, only their work is small: what is tested is the door. No terminal is involved.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvloop
from starlette.types import Receive, Scope, Send

from tests.support.waiting import HANG_S
from wsh.http.server.serve import ConnectionLimits, Listener, Presence
from wsh.mcp.call import CallRunner
from wsh.mcp.caller import ConnectionSurroundings
from wsh.mcp.registry import Registry
from wsh.mcp.resource.index import ResourceIndex
from wsh.mcp.resource.prompt import PromptIndex
from wsh.mcp.server import McpDoor
from wsh.mcp.transport.endpoint import McpEndpoint
from wsh.wire.caller import Caller
from wsh.wire.system.place import Places, ensure_private
from wsh.wire.tool import CallContext, Family, ToolOutcome, ToolSpec


@dataclass
class Log:
    """What happened inside the tools, for a test to look at."""

    started: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    ended_owners: list[str] = field(default_factory=list)


class Shelf:
    """Two sessions that exist in name only."""

    def __init__(self) -> None:
        self.shelf: ResourceIndex | None = None

    def list_names(self) -> list[str]:
        return ["one", "two"]

    async def read_sessions(self) -> str:
        return json.dumps([{"name": name} for name in self.list_names()])

    async def read_view(self, name: str, view: str) -> str:
        from wsh.wire.error import SessionNotFound

        if name not in self.list_names():
            raise SessionNotFound(name)
        return json.dumps({"name": name, "view": view})

    def watch(self, shelf: ResourceIndex) -> Callable[[], None]:
        self.shelf = shelf
        return lambda: None


def make_tools(log: Log) -> list[ToolSpec]:
    async def echo(arguments: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        return ToolOutcome(
            {"text": arguments["text"], "caller": ctx.caller.id, "cwd": ctx.caller.cwd, "env": dict(ctx.caller.environ)}
        )

    async def slow(arguments: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        key = str(arguments.get("key", ""))
        log.started.append(key)
        try:
            await asyncio.sleep(arguments["ms"] / 1000)
        except asyncio.CancelledError:
            await asyncio.sleep(0.02)  # a cleanup that itself must wait
            log.stopped.append(key)
            raise
        log.finished.append(key)
        return ToolOutcome({"slept": arguments["ms"], "timeout_ms": arguments.get("timeout_ms")})

    async def chatter(arguments: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        for number in range(arguments["lines"]):
            ctx.progress(f"line {number}", stream="stdout", phase="index")
            await asyncio.sleep(arguments["pause_ms"] / 1000)
        return ToolOutcome({"lines": arguments["lines"]})

    async def broken(arguments: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        raise RuntimeError("the secret text of an exception")

    def spec(name: str, run: Any, properties: dict[str, Any], required: list[str], **more: Any) -> ToolSpec:
        return ToolSpec(
            name=name,
            title=name.title(),
            description=f"A tool to test the door: {name}.",
            input_schema={
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            output_schema={"type": "object"},
            run=run,
            **more,
        )

    number = {"type": "integer", "minimum": 0}
    tools = [
        spec("echo", echo, {"text": {"type": "string"}}, ["text"], family="terminal", reads=True),
        spec("chatter", chatter, {"lines": number, "pause_ms": number}, ["lines", "pause_ms"], family="workspace"),
        spec(
            "slow",
            slow,
            {"ms": number, "key": {"type": "string"}, "timeout_ms": number | {"maximum": 70_000_000}},
            ["ms"],
            family="workspace",
            timeout_argument="timeout_ms",
        ),
    ]
    families: tuple[Family, ...] = ("terminal", "exec")
    for family in families:
        tools.append(spec(f"broken_{family}", broken, {}, [], family=family))
        tools.append(spec(f"picky_{family}", echo, {"text": {"enum": ["a", "b"]}}, ["text"], family=family))
    return tools


@dataclass
class RunningDoor:
    url: str
    log: Log
    shelf: Shelf
    endpoint: McpEndpoint
    loop: asyncio.AbstractEventLoop

    def under_way(self) -> int:
        return self.endpoint.door.calls.under_way


@contextmanager
def serve(
    places: Places,
    specs: Callable[[Log], Sequence[ToolSpec]] = make_tools,
    queue_size: int = 64,
    raw: bool = True,
) -> Iterator[RunningDoor]:
    """Without `raw` it is as a server that knows lines only in the chunks of HTTP."""
    ensure_private(places.runtime)
    log, shelf = Log(), Shelf()
    tcp = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(places.socket))
    unix.listen()
    ready = threading.Event()
    running: list[RunningDoor] = []
    stop: list[Callable[[], None]] = []

    async def main() -> None:
        door = McpDoor(
            Registry(specs(log)),
            CallRunner(queue_size=queue_size, progress_per_second=4),
            ConnectionSurroundings("server", "/", {"WSH_TEST": "server"}),
            ResourceIndex(shelf),
            PromptIndex(),
        )
        door.end_listeners.append(log.ended_owners.append)
        endpoint = McpEndpoint(door, _identify)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if not raw:
                scope["state"].pop("connection", None)
            await endpoint(scope, receive, send)

        listeners = [
            Listener(app, "tcp", ConnectionLimits(), Presence()),
            Listener(app, "unix", ConnectionLimits(), Presence()),
        ]

        def end() -> None:
            loop.call_soon_threadsafe(ended.set)

        stop.append(end)
        async with endpoint.run():
            for listener, sock in zip(listeners, (tcp, unix), strict=True):
                await listener.start([sock])
            url = f"http://127.0.0.1:{tcp.getsockname()[1]}/mcp"
            running.append(RunningDoor(url, log, shelf, endpoint, loop))
            ready.set()
            await ended.wait()
        for listener in listeners:
            await listener.aclose(1)

    def run() -> None:
        # The server's own loop: asyncio's leaves a client alone that connects while its socket is closed.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        if not ready.wait(HANG_S):
            raise TimeoutError("the door did not open")
        yield running[0]
    finally:
        for end in stop:
            end()
        thread.join(HANG_S)
        tcp.close()
        unix.close()
        places.socket.unlink(missing_ok=True)


def _identify(scope: Scope) -> Caller:
    return Caller("agent", "tester", "unix" if scope["server"][1] is None else "token")
