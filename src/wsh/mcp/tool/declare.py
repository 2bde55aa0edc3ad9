"""How a tool is declared: what agents read of it, and how its arguments spell calls of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wsh.mcp.tool.far import call_far, find_host
from wsh.operation.context import Rooms
from wsh.operation.operation import NOTHING, Operation, OperationCall
from wsh.session.session import Session
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import Model
from wsh.wire.tool import Annotations, CallContext, Family, ToolOutcome, ToolSpec

Arguments: TypeAlias = JsonObject
"""Checked against the tool's schema; a value that is left out is not there."""


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool, from which calls of operations are made."""

    rooms: Rooms
    arguments: Arguments
    context: CallContext

    @property
    def session(self) -> Session:
        return self.rooms.registry.get_session(self.arguments["session"])

    async def make(self, operation: Operation, params: Model = NOTHING, session: str | None = None) -> Any:
        """On the session that is named, or else on that of the arguments."""
        call = OperationCall(operation, params, self.context.caller, session or self.arguments.get("session"))
        return await call.make(self.rooms, self.context.progress)

    def pick(self, *names: str, **more: object) -> Arguments:
        """The arguments of these names, where they are given."""
        return {name: self.arguments[name] for name in names if name in self.arguments} | more


@dataclass(frozen=True)
class OperationTool:
    name: str
    title: str
    description: str
    input_schema: Mapping[str, object]
    output_schema: Mapping[str, object] | None
    spell: Callable[[ToolCall], Awaitable[ToolOutcome]]
    calls: tuple[Operation, ...]
    """The operations that it spells."""
    schema_version: int = 1
    default_timeout_ms: int = 30_000
    timeout_argument: str | None = None
    timeout_spelling: str | None = None
    self_timed: bool | None = None
    """Left out: where its arguments have a timeout."""
    slack_ms: int = 5000
    checks_itself: bool = False
    reads: bool = False
    annotations: Annotations = field(default_factory=Annotations)
    family: Family = "terminal"
    offered: Callable[[Mapping[str, str]], bool] | None = None
    addresses: tuple[str, ...] = ("session",)
    """Arguments that are addresses of sessions: `host/name` has the tool run there. The first is what the call is about."""
    names: tuple[str, ...] = ("session",)
    """Fields of the result that become addresses then."""

    def bind(self, rooms: Rooms) -> ToolSpec:
        async def run(arguments: Arguments, context: CallContext) -> ToolOutcome:
            far = find_host(arguments, self.addresses)
            if far is not None:
                host, there = far
                repeatable = all(operation.is_repeatable for operation in self.calls)
                return await call_far(rooms, self.name, host, there, context, self.names, repeatable=repeatable)
            return await self.spell(ToolCall(rooms, arguments, context))

        return ToolSpec(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            family=self.family,
            run=run,
            schema_version=self.schema_version,
            default_timeout_ms=self.default_timeout_ms,
            timeout_argument=self.timeout_argument,
            timeout_spelling=self.timeout_spelling,
            self_timed=self.timeout_argument is not None if self.self_timed is None else self.self_timed,
            slack_ms=self.slack_ms,
            checks_itself=self.checks_itself,
            reads=self.reads,
            annotations=self.annotations,
            offered=self.offered,
        )
