"""Tool calls of a stdio connection without the SDK's dispatcher.

The SDK makes several models, a task group and a cancel scope for each request, which is most of what a short call costs. A call that is only
a name and arguments needs none of them: `CallRunner` makes it like every other, and its answer is spelled here. Whatever is less plain (a token
for progress, fields that this file does not know, a tool that there is not) goes through the SDK, and so does every other method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import pydantic_core

from wsh.mcp.call import CallRunner
from wsh.mcp.caller import McpClient
from wsh.mcp.registry import Registry, Tool
from wsh.wire.json import rpc
from wsh.wire.json.object import JsonObject
from wsh.wire.system.begin import begin
from wsh.wire.tool import ToolOutcome

REVISIONS: Final = ("2025-06-18", "2025-11-25")
"""Those in which a result is spelled as here."""
_CALL_FIELDS: Final = {"name", "arguments"}


class CallLink(Protocol):
    """The connection, as far as an answer needs it."""

    async def write(self, line: bytes) -> None: ...

    def admit(self, id: rpc.Id) -> bool: ...

    def settle(self, id: object) -> None: ...


class QuickCalls:
    """The plain calls of one connection. `before_answer` runs when a call is over and its answer is not yet written."""

    def __init__(
        self,
        link: CallLink,
        registry: Registry,
        calls: CallRunner,
        client: McpClient,
        spell: Callable[[Tool, ToolOutcome], JsonObject],
        fail: Callable[[Exception], JsonObject],
        before_answer: Callable[[], Awaitable[None]],
    ) -> None:
        self._link = link
        self._registry = registry
        self._calls = calls
        self._client = client
        self._spell = spell
        self._fail = fail
        self._before_answer = before_answer
        self._under_way: dict[str, asyncio.Future[None]] = {}

    def take(self, message: rpc.Message) -> bool:
        """Whether this file sees to `message`; if not, it is the SDK's."""
        if message.method == "tools/call" and message.id is not None:
            params = message.params
            name, arguments = params.get("name"), params.get("arguments", {})
            if not isinstance(name, str) or not isinstance(arguments, dict) or not _CALL_FIELDS.issuperset(params):
                return False
            tool = self._registry.find_tool(name, self._client.toolsets)
            if tool is None or not self._link.admit(message.id):
                return False
            serving = begin(self._serve(message.id, tool, arguments))
            if not serving.done():
                self._under_way[rpc.canonical_id(message.id) or ""] = serving
            return True
        if message.method == "notifications/cancelled" and message.id is None:
            under_way = self._under_way.get(rpc.canonical_id(message.params.get("requestId")) or "")
            if under_way is not None:
                under_way.cancel()
                return True
        return False

    async def _serve(self, id: rpc.Id, tool: Tool, arguments: dict[str, object]) -> None:
        answer: JsonObject
        try:
            try:
                outcome = await self._calls.serve(tool, arguments, self._client, id, {}, _say_nothing)
                answer = {"result": self._spell(tool, outcome)}
            except Exception as problem:
                answer = {"error": self._fail(problem)}
            await self._before_answer()
            await self._link.write(_dump({"jsonrpc": "2.0", "id": id, **answer}))
        except OSError:
            pass  # the reader of the connection finds it closed, too
        finally:
            # A call that was taken back has no answer. One whose answer waits for a slow reader is under way.
            self._under_way.pop(rpc.canonical_id(id) or "", None)
            self._link.settle(id)

    async def aclose(self) -> None:
        """End what is under way: the client is gone."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _dump(body: JsonObject) -> bytes:
    try:
        return pydantic_core.to_json(body, inf_nan_mode="null") + b"\n"
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        return rpc.dump(body)


async def _say_nothing(fields: dict[str, object]) -> None:
    """Without a token there is no progress to tell."""
