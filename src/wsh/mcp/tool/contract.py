"""The contract's tools: one that is the contract, and two for older callers, whose flat payload it rewrites.

Stage `strict` removes the older two; a connection may be stricter than the server, and never laxer in its list.
"""

from __future__ import annotations

from collections.abc import Mapping

from wsh.contract.request.alias import CANONICAL_TOOL, Tool
from wsh.contract.request.model import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from wsh.contract.request.schema import input_schema, output_schema
from wsh.contract.request.stage import Stage, parse_stage
from wsh.mcp.tool.declare import OperationTool, ToolCall
from wsh.operation.contract import ContractParams, call_terminal
from wsh.wire.model.base import AnyJson
from wsh.wire.tool import Annotations, ToolOutcome

SCHEMA_VERSION = 4

_ABOUT: dict[Tool, tuple[str, str]] = {
    "memory_terminal_interactive": (
        "Terminal with a person in the loop",
        "Run a command under a policy, with a person who can see and decide. Actions: execute, read_output, terminate, "
        "list. execute needs invocation.mode and invocation.intent. mode interactive shows the exact command to the "
        "person at the desktop, who approves or declines, and it then runs in a terminal they can watch; mode headless "
        "runs at once where the server runs, only what the policy's allowlist covers, as one program without a shell. "
        "intent execute_command runs execution.command (with execution.args: one program and its arguments); open_only "
        "opens an interactive terminal, into which later calls type with target.terminal_id; such a line is completed, with "
        "exit_code, where the shell tells its end. status accepted means it still runs, or that its end is not known, or, with result.approval pending, that nobody answered yet: call read_output with target.session_id and target.cursor set to the last next_cursor, or "
        "terminate. Every failure carries a PM_TERM code, what is wrong, and a fallback that says what to do next; "
        "headless is never tried for you. Not for typing into full-screen programs: use the wsh_ tools for that.",
    ),
    "memory_terminal": (
        "Headless commands (legacy name)",
        "Legacy adapter for memory_terminal_interactive in headless mode: run, read_output, kill, list with flat fields "
        "(command, args, cwd, timeout in milliseconds, env, workspace_id, session_id). Same policy, same answers. New "
        "callers use memory_terminal_interactive.",
    ),
    "memory_terminal_vscode": (
        "Visible terminals (legacy name)",
        "Legacy adapter for memory_terminal_interactive in interactive mode: create, send, close, list with flat fields "
        "(name, cwd, env, command, terminal_id, workspace_id). Same person, same policy, same answers. New callers use "
        "memory_terminal_interactive.",
    ),
}


def list_contract_tools(stage: Stage = "compat") -> list[OperationTool]:
    return [_declare(name, stage) for name in _ABOUT if stage != "strict" or name == CANONICAL_TOOL]


def _declare(name: Tool, stage: Stage) -> OperationTool:
    async def spell(call: ToolCall) -> ToolOutcome:
        request = AnyJson.model_construct(root=call.arguments)
        answer = await call.make(call_terminal, ContractParams.model_construct(request=request, tool=name))
        return ToolOutcome(answer.payload, is_error=not answer.ok)

    title, about = _ABOUT[name]
    return OperationTool(
        name,
        title,
        about,
        input_schema(name, stage),
        output_schema(),
        spell,
        (call_terminal,),
        schema_version=SCHEMA_VERSION,
        default_timeout_ms=DEFAULT_TIMEOUT_MS,
        self_timed=True,
        slack_ms=MAX_TIMEOUT_MS + 300_000,
        checks_itself=True,
        annotations=Annotations(destructive=True, open_world=True),
        family="contract",
        offered=None if name == CANONICAL_TOOL else _accepts_legacy,
    )


def _accepts_legacy(environ: Mapping[str, str]) -> bool:
    return parse_stage(environ) != "strict"
