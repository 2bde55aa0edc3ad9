"""The workspace tools: schemas and texts are the room's, and each is a call of one operation."""

from __future__ import annotations

from wsh.mcp.tool.declare import OperationTool, ToolCall
from wsh.operation.workspace import ToolParams, call_workspace
from wsh.wire.model.base import AnyJson
from wsh.wire.setting import Settings
from wsh.wire.tool import Annotations, ToolOutcome
from wsh.workspace import schema

_READS = frozenset({"check_status"})


def list_workspace_tools(settings: Settings) -> list[OperationTool]:
    return [_declare(name, entry, schema.find_timeout_ms(settings, name)) for name, entry in schema.TOOLS.items()]


def _declare(name: str, entry: schema.SchemaEntry, timeout_ms: int) -> OperationTool:
    async def spell(call: ToolCall) -> ToolOutcome:
        arguments = AnyJson.model_construct(root=call.arguments)
        params = ToolParams.model_construct(tool=name, arguments=arguments, checked=True)
        return ToolOutcome(await call.make(call_workspace, params))

    return OperationTool(
        name,
        entry.title,
        entry.description,
        entry.input_schema(timeout_ms),
        entry.output,
        spell,
        (call_workspace,),
        schema_version=schema.VERSION,
        default_timeout_ms=timeout_ms,
        timeout_argument="timeoutMs",
        timeout_spelling="timeout_ms",
        self_timed=False,
        reads=name in _READS,
        annotations=Annotations(read_only=entry.read_only, idempotent=True),
        family="workspace",
    )
