"""Short words for tests that talk over a bridge."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from tests.support.waiting import HANG_S
from wsh.approval.request import Asker, EffectName, RiskName
from wsh.bridge.client import BridgeClient, Greeting
from wsh.bridge.endpoint import Endpoint
from wsh.bridge.frame import RequestFrame

_count = itertools.count(1)


def greeting(token: str, session: str = "runtime-1") -> Greeting:
    return Greeting(token=token, trace_id="trace_test", runtime_session_id=session, name="test server")


def ask(
    *argv: str,
    kind: Literal["run", "open", "send"] = "run",
    terminal_id: str | None = None,
    effect: EffectName = "ask",
    risk: RiskName = "none",
    deadline_ms: int = 10_000,
    cwd: str | None = "/",
    env: dict[str, str] | None = None,
    command: str | None = None,
    caller: str = "agent",
) -> RequestFrame:
    number = next(_count)
    return RequestFrame(
        id=f"r{number}",
        trace_id=f"trace_{number}",
        request_id=f"req_{number}",
        kind=kind,
        session_id=f"sess_{number}",
        terminal_id=terminal_id or f"term_{number}",
        command=command if command is not None else " ".join(argv),
        argv=list(argv) if kind == "run" else [],
        cwd=cwd,
        env=env or {},
        effect=effect,
        risk=risk,
        asker=Asker(caller=caller),
        deadline_ms=deadline_ms,
    )


@asynccontextmanager
async def connected(endpoint: Endpoint, session: str = "runtime-1", **options: Any) -> AsyncIterator[BridgeClient]:
    client = await BridgeClient.connect(endpoint.host, endpoint.port, greeting(endpoint.token, session), **options)
    try:
        yield client
    finally:
        await client.aclose()


class RawPeer:
    """A client that writes its own lines, to say what no proper client would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, endpoint: Endpoint, limit: int = 2**24) -> RawPeer:
        return cls(*await asyncio.open_connection(endpoint.host, endpoint.port, limit=limit))

    def say(self, line: bytes | dict[str, Any]) -> None:
        self.writer.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")

    async def hello(self, endpoint: Endpoint, **changes: Any) -> dict[str, Any]:
        self.say(
            {
                "type": "hello",
                "versions": [1],
                "token": endpoint.token,
                "trace_id": "trace_raw",
                "runtime_session_id": "raw",
                **changes,
            }
        )
        return await self.hear()

    async def hear(self, *, skip: tuple[str, ...] = ("heartbeat",)) -> dict[str, Any]:
        """The next frame that is not to be skipped; {} when the connection ended."""
        while True:
            async with asyncio.timeout(HANG_S):
                line = await self.reader.readline()
            if not line:
                return {}
            frame: dict[str, Any] = json.loads(line)
            if frame["type"] not in skip:
                return frame

    async def aclose(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass
