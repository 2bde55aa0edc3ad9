"""A plain call whose answer waits for a host that reads slowly: nothing of it is kept once the answer is out."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.support.session.running import run
from tests.support.waiting import until
from wsh.mcp.caller import ConnectionSurroundings
from wsh.mcp.quick_call import QuickCalls
from wsh.mcp.transport.stdio import MOST_UNANSWERED, StdioLink
from wsh.wire.caller import Caller
from wsh.wire.json import rpc


class SlowLink:
    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.written: list[bytes] = []
        self.open: set[object] = set()

    async def write(self, line: bytes) -> None:
        await self.reads.wait()
        self.written.append(line)

    def admit(self, id: rpc.Id) -> bool:
        self.open.add(id)
        return True

    def settle(self, id: object) -> None:
        self.open.discard(id)


class SlowOut:
    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.lines: list[bytes] = []

    def write_now(self, line: bytes) -> bool:
        if self.reads.is_set():
            self.lines.append(line)
        return self.reads.is_set()

    async def write(self, line: bytes) -> None:
        await self.reads.wait()
        self.lines.append(line)


def make_calls(link: SlowLink | StdioLink) -> QuickCalls:
    async def answer(*_: object) -> None:
        """Over at once."""

    async def nothing() -> None:
        """Nothing to tell."""

    calls: Any = SimpleNamespace(serve=answer)
    registry: Any = SimpleNamespace(find_tool=lambda *_: object())
    client: Any = SimpleNamespace(toolsets=())
    return QuickCalls(link, registry, calls, client, lambda *_: {}, lambda _: {}, nothing)


def take(calls: QuickCalls, method: str, id: int | None, **params: object) -> bool:
    return calls.take(rpc.Message({"params": params}, id, method))


def test_a_call_that_is_over_before_its_answer_can_be_written_is_not_under_way_afterwards() -> None:
    async def work() -> None:
        link = SlowLink()
        calls = make_calls(link)
        assert take(calls, "tools/call", 7, name="quick")
        link.reads.set()
        await until(lambda: link.written and not link.open, "the answer")
        assert len(link.written) == 1
        assert not take(calls, "notifications/cancelled", None, requestId=7), "the next 7 may be the SDK's"

    run(work())


def test_an_answer_that_waits_for_the_host_can_still_be_taken_back() -> None:
    async def work() -> None:
        link = SlowLink()
        calls = make_calls(link)
        assert take(calls, "tools/call", 7, name="quick") and link.open
        assert take(calls, "notifications/cancelled", None, requestId=7)
        await until(lambda: not link.open, "the end of the call")
        link.reads.set()
        await asyncio.sleep(0.01)
        assert not link.written

    run(work())


def test_a_host_that_reads_nothing_is_not_read_either_until_it_does() -> None:
    async def work() -> None:
        out = SlowOut()
        link = StdioLink(Caller("agent", "mcp", "unix"), ConnectionSurroundings("12345678", "/"), out)
        link.quick_calls = make_calls(link)
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "quick", "arguments": {}}}
        taken = 0
        while taken < 10 * MOST_UNANSWERED and link.take_at_once(rpc.dump({**call, "id": taken})):
            taken += 1
        assert taken == MOST_UNANSWERED
        waiting = asyncio.ensure_future(link.wait_until_read())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        out.reads.set()
        await waiting
        await until(lambda: len(out.lines) == MOST_UNANSWERED, "the answers")
        assert link.take_at_once(rpc.dump({**call, "id": "after"}))

    run(work())
