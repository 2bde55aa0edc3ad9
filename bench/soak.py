"""`python -m bench.soak [--calls N] [--record]`: many mixed calls through every door, and what they leave in the server's memory.

Four clients work side by side, each in a session of its own: MCP over stdio, MCP over HTTP (both eras), plain HTTP, and a JSON
WebSocket. Sessions, connections and MCP sessions come and go between the calls. Growth is what the server's own memory has more
at the end than after the first `WARM_UP` calls. What is kept up to a limit is filled to its limit before, since it may fill: scrollbacks,
histories of commands, and the MCP sessions that clients left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.support.serving import RunningServer, running_server
from websockets.asyncio.client import ClientConnection, connect

from bench.private import private_places
from wsh.client.http_client import HttpClient, ServerTarget
from wsh.wire.system.place import Places

WARM_UP = 10_000
SAMPLE_EVERY = 10_000
SCROLLBACK_LINES = 11_000
COMMANDS_AT_ONCE = 50
WAIT_MS = 300_000
"""However busy the machine is."""
MCP_SESSIONS = 33
"""One more than the server keeps as shipped."""
BOX = {"x": 1, "y": 1, "width": 9, "height": 1}
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
RECORD = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEADING = "## Soak"


@dataclass
class Meter:
    """Counts calls of all lanes, and looks at the server's memory now and then."""

    pid: int
    calls: int
    every: int
    warm_up: int
    done: int = 0
    samples: list[tuple[int, float]] = field(default_factory=list)
    """(calls so far, megabytes that are the server's own)"""
    began: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        return self.done >= self.calls

    def count(self) -> None:
        self.done += 1
        if self.done == self.warm_up or self.done % self.every == 0:
            self.samples.append((self.done, private_mb(self.pid)))
            rate = self.done / (time.monotonic() - self.began)
            print(f"  {self.done:>9,} calls  {self.samples[-1][1]:7.1f} MB  {rate:6.0f}/s", file=sys.stderr, flush=True)

    @property
    def first(self) -> float:
        return next(mb for count, mb in self.samples if count >= self.warm_up)

    @property
    def growth(self) -> float:
        return self.samples[-1][1] / self.first - 1


def private_mb(pid: int) -> float:
    """Memory that a process has written and shares with no other, in megabytes; all of it where only root may see that.

    Pages of files that it has only read are left out: whether they are its own depends on who else reads the same file.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty:", "Swap:"))) / 1024


class Lane(Protocol):
    """A client that works in the session `name`."""

    name: str

    def turn(self, number: int) -> AsyncIterator[object]:
        """One round of calls; yields after each."""
        ...

    async def aclose(self) -> None: ...


class HttpLane:
    def __init__(self, server: RunningServer, name: str) -> None:
        self.name = name
        self._server = server
        self._link = HttpClient(ServerTarget(url=server.url, token=server.token))

    async def ask(self, method: str, path: str, body: Any = None, *, expect: int = 200) -> Any:
        headers = {"content-type": "application/json"} if isinstance(body, dict) else {}
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        answer = await self._link.request(method, path, headers=headers, body=data)
        said = await answer.read()
        assert answer.status == expect, (method, path, answer.status, said[:300])
        return json.loads(said) if said else None

    async def turn(self, number: int) -> AsyncIterator[object]:
        here = f"/sessions/{self.name}"
        yield await self.ask("POST", f"{here}/run", {"input": f"echo http {number}", "max_wait_ms": WAIT_MS})
        yield await self.ask("GET", f"{here}/screen?format=styled")
        yield await self.ask("GET", f"{here}/scrollback?limit=50")
        yield await self.ask("GET", f"{here}/commands")
        yield await self.ask("GET", f"{here}/state")
        yield await self.ask("GET", "/sessions")
        made = await self.ask("POST", f"{here}/overlay", {**BOX, "spans": [{"text": "o"}]}, expect=201)
        yield None
        yield await self.ask("PUT", f"{here}/overlay/{made['id']}", {"spans": [{"text": "other"}]}, expect=204)
        yield await self.ask("DELETE", f"{here}/overlay/{made['id']}", expect=204)
        yield await self.ask("POST", f"{here}/input", b"\n", expect=204)
        yield await self.ask("GET", f"{here}/idle?timeout_ms=1&max_wait_ms={WAIT_MS}")
        yield await self.ask("GET", f"/sessions/none-{number}", expect=404)
        yield await self.ask("GET", "/server/info")
        if number % 20 == 1:
            yield await self.ask("POST", "/workspace/check_status", {})
        if number % 50 == 1:
            yield await self.ask("POST", "/sessions", {"name": f"brief-{number}", "command": "true"}, expect=201)
            yield await self.ask("DELETE", f"/sessions/brief-{number}", expect=204)
            await self.aclose()
            self._link = HttpClient(ServerTarget(url=self._server.url, token=self._server.token))

    async def aclose(self) -> None:
        await self._link.aclose()


class SocketLane:
    def __init__(self, server: RunningServer, name: str) -> None:
        self.name = name
        self._server = server
        self._socket: ClientConnection | None = None
        self._id = 0

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        if self._socket is None:
            self._socket = await connect(
                f"{self._server.ws_url}/sessions/{self.name}/ws/json",
                additional_headers=self._server.auth,
                max_size=None,
            )
            await self.ask("subscribe", {"events": ["line", "cursor", "mode", "overlay"], "interval_ms": 20})
        self._id += 1
        await self._socket.send(json.dumps({"id": self._id, "method": method, "params": params or {}}))
        while True:
            said = json.loads(await self._socket.recv())
            if said.get("id") == self._id:
                assert "error" not in said, said
                return said["result"]

    async def turn(self, number: int) -> AsyncIterator[object]:
        yield await self.ask("run_command", {"input": f"echo socket {number}", "max_wait_ms": WAIT_MS})
        yield await self.ask("get_screen", {"format": "styled"})
        yield await self.ask("get_scrollback", {"limit": 20})
        yield await self.ask("list_commands")
        yield await self.ask("get_state")
        made = await self.ask("create_panel", {"position": "top", "height": 1, "spans": [{"text": "p"}]})
        yield None
        yield await self.ask("delete_panel", {"id": made["id"]})
        yield await self.ask("get_input_mode")
        yield await self.ask("send_input", {"data": "\n"})
        yield await self.ask("await_quiesce", {"timeout_ms": 1, "max_wait_ms": WAIT_MS})
        if number % 50 == 1:
            await self.aclose()

    async def aclose(self) -> None:
        if self._socket is not None:
            await self._socket.close()
            self._socket = None


class McpTurn:
    """The calls of a round, for any way of sending them."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        raise NotImplementedError

    async def turn(self, number: int) -> AsyncIterator[object]:
        yield await self.tool("wsh_run_command", session=self.name, input=f"echo mcp {number}", max_wait_ms=WAIT_MS)
        yield await self.tool("wsh_get_screen", session=self.name)
        yield await self.tool("wsh_get_scrollback", session=self.name, limit=20)
        yield await self.tool("wsh_list_sessions")
        made = await self.tool("wsh_overlay", session=self.name, **BOX, spans=[{"text": "o"}])
        yield None
        yield await self.tool("wsh_remove_overlay", session=self.name, id=made["id"])
        yield await self.tool("wsh_send_input", session=self.name, input="\n")
        yield await self.tool("wsh_await_quiesce", session=self.name, timeout_ms=1, max_wait_ms=WAIT_MS)
        if number % 2 == 0:
            yield await self.tool("execute_command", command="true")
            asked = {"action": "execute", "invocation": {"mode": "headless", "intent": "execute_command"}}
            yield await self.tool("memory_terminal_interactive", **asked, execution={"command": "pwd"})
        if number % 20 == 1:
            yield await self.tool("check_status")


class StdioLane(McpTurn):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._process: asyncio.subprocess.Process | None = None
        self._id = 0

    async def rpc(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        while True:
            said = json.loads(await self._process.stdout.readline())
            if said.get("id") == self._id:
                return answer_of(said)

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "wsh.cli.main", "mcp",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
            )  # fmt: skip
            await self.rpc("initialize", hello())
            assert self._process.stdin is not None
            self._process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return tool_answer(await self.rpc("tools/call", {"name": name, "arguments": arguments}))

    async def turn(self, number: int) -> AsyncIterator[object]:
        async for _ in super().turn(number):
            yield None
        if number % 10 == 1:
            yield await self.rpc("resources/list", {})
            yield await self.rpc("resources/read", {"uri": f"wsh://sessions/{self.name}/screen"})
        if number % 200 == 0:
            await self.aclose()

    async def aclose(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()
            self._process = None


class McpHttpLane(McpTurn):
    """Rounds of the modern era (no session) and of the older one (a session, ended by half of its clients) take turns."""

    def __init__(self, server: RunningServer, name: str) -> None:
        super().__init__(name)
        self._link = HttpClient(ServerTarget(url=server.url, token=server.token))
        self.session: str | None = None
        self._modern = False
        self._id = 0

    async def post(self, message: dict[str, Any], *, expect: int = 200) -> tuple[Any, dict[str, str]]:
        version = MODERN if self._modern else LEGACY
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers["mcp-protocol-version"] = version
        if self._modern:
            headers["mcp-method"] = str(message["method"])
            if "name" in message.get("params", {}):
                headers["mcp-name"] = str(message["params"]["name"])
        elif self.session is not None:
            headers["mcp-session-id"] = self.session
        answer = await self._link.request("POST", "/mcp", headers=headers, body=json.dumps(message).encode())
        said = await answer.read()
        assert answer.status == expect, (message, answer.status, said[:300])
        data = [line[5:] for line in said.splitlines() if line.startswith(b"data:") and line[5:].strip()]
        return json.loads(data[-1] if data else said or b"null"), answer.headers

    async def rpc(self, method: str, params: dict[str, Any]) -> Any:
        self._id += 1
        if self._modern:
            params = params | {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
                }
            }
        said, headers = await self.post({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        if method == "initialize":
            self.session = headers["mcp-session-id"]
        return answer_of(said)

    async def probe(self) -> int:
        """The status of a ping in the present session."""
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {"mcp-protocol-version": LEGACY, "mcp-session-id": self.session or ""}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        answer = await self._link.request("POST", "/mcp", headers=headers, body=body)
        await answer.read()
        return answer.status

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        if not self._modern and self.session is None:
            await self.rpc("initialize", hello())
            await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, expect=202)
        return tool_answer(await self.rpc("tools/call", {"name": name, "arguments": arguments}))

    async def turn(self, number: int) -> AsyncIterator[object]:
        self._modern = number % 2 == 0
        async for _ in super().turn(number):
            yield None
        if number % 51 == 0 and self.session is not None:
            if number % 2:
                headers = {"mcp-session-id": self.session, "mcp-protocol-version": LEGACY}
                await (await self._link.request("DELETE", "/mcp", headers=headers)).read()
            self.session = None

    async def aclose(self) -> None:
        await self._link.aclose()


def hello() -> dict[str, Any]:
    return {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}


def answer_of(said: dict[str, Any]) -> Any:
    assert "result" in said, said
    return said["result"]


def tool_answer(result: Any) -> dict[str, Any]:
    assert not result.get("isError"), result
    structured = result.get("structuredContent")
    return structured if isinstance(structured, dict) else {}


def measured_server(places: Places) -> AbstractContextManager[RunningServer]:
    """An executed one: a process forked from a warm one shares memory with it, which it makes its own little by little."""
    return running_server(places, prefix=["env"])


async def soak(server: RunningServer, meter: Meter, lines: int = SCROLLBACK_LINES) -> None:
    """Work through every door until the meter is full. Each session prints so many lines before."""
    lanes: list[Lane] = [
        HttpLane(server, "http"),
        SocketLane(server, "socket"),
        StdioLane("stdio"),
        McpHttpLane(server, "mcp"),
    ]
    opener = HttpLane(server, "")
    for lane in lanes:
        await opener.ask("POST", "/sessions", {"name": lane.name, "command": "bash --norc"}, expect=201)
    await asyncio.gather(*(_fill(server, lane.name, lines) for lane in lanes))
    await opener.aclose()
    await _leave_mcp_sessions(server)
    await asyncio.gather(*(_drive(lane, meter) for lane in lanes))
    meter.samples.append((meter.done, private_mb(meter.pid)))


async def _fill(server: RunningServer, name: str, lines: int) -> None:
    """As the calls themselves do: a prompt and a line of output for each command."""
    lane = HttpLane(server, name)
    for _ in range(0, lines // 2, COMMANDS_AT_ONCE):
        await lane.ask("POST", f"/sessions/{name}/input", b"echo fill\n" * COMMANDS_AT_ONCE, expect=204)
        await lane.ask("GET", f"/sessions/{name}/idle?timeout_ms=100&max_wait_ms={WAIT_MS}")
    await lane.aclose()


async def _leave_mcp_sessions(server: RunningServer) -> None:
    lane = McpHttpLane(server, "")
    for _ in range(MCP_SESSIONS):
        lane.session = None
        await lane.tool("wsh_list_sessions")
    await lane.aclose()


async def _drive(lane: Lane, meter: Meter) -> None:
    number = 0
    try:
        while not meter.over:
            number += 1
            async for _ in lane.turn(number):
                meter.count()
    finally:
        await lane.aclose()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=0.05, help="growth that is allowed after the first calls")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/benchmarks.md")
    options = parser.parse_args()
    with private_places() as places:
        os.environ["ALLOWED_COMMANDS"] = "true"
        with measured_server(places) as server:
            meter = Meter(server.process.pid, options.calls, SAMPLE_EVERY, min(WARM_UP, options.calls // 5))
            asyncio.run(soak(server, meter))
    text = report(meter, options.limit)
    print(text)
    if options.record:
        before = RECORD.read_text(encoding="utf-8").split(f"\n{HEADING}\n")[0].rstrip("\n")
        RECORD.write_text(f"{before}\n\n{HEADING}\n\n{text}\n", encoding="utf-8")
    return 0 if meter.growth <= options.limit else 1


def report(meter: Meter, limit: float) -> str:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    verdict = "ok" if meter.growth <= limit else "MISSED"
    return (
        f"`make soak`, {today}: {meter.done:,} mixed calls over MCP on stdio, MCP on HTTP, HTTP and WebSocket. The server's own memory was "
        f"{meter.first:.1f} MB after the first {meter.warm_up:,} and {meter.samples[-1][1]:.1f} MB at the end: "
        f"{meter.growth:+.1%} (allowed: {limit:.0%}; {verdict})."
    )


if __name__ == "__main__":
    sys.exit(main())
