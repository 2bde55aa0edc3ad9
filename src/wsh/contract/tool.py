"""The contract's tools, as the MCP door mounts them: one registration each.

`memory_terminal_interactive` is the contract. The other two exist for older callers: they rewrite a legacy payload and
go through the same dispatch, and stage `strict` removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from wsh.contract.alias import CANONICAL_TOOL, Stage, Tool, parse_stage
from wsh.contract.dispatch import Contract
from wsh.contract.model import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from wsh.contract.schema import input_schema, output_schema
from wsh.wire.tool import Annotations, CallContext, ToolOutcome, ToolSpec

SCHEMA_VERSION = 2

_ABOUT: dict[Tool, tuple[str, str]] = {
    "memory_terminal_interactive": (
        "Terminal with a person in the loop",
        "Run a command under a policy, with a person who can see and decide. Actions: execute, read_output, terminate, "
        "list. execute needs invocation.mode and invocation.intent. mode interactive shows the exact command to the "
        "person at the desktop, who approves or declines, and it then runs in a terminal they can watch; mode headless "
        "runs at once where the server runs, only what the policy's allowlist covers, as one program without a shell. "
        "intent execute_command runs execution.command (with execution.args: one program and its arguments); open_only "
        "opens an interactive terminal, into which later calls type with target.terminal_id; such a line is completed, with "
        "exit_code, where the shell tells its end. status accepted means it still runs, or that its end is not known: call read_output with target.session_id and target.cursor set to the last next_cursor, or "
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


def make_tools(contract: Contract, stage: Stage = "compat") -> list[ToolSpec]:
    """Registrations for a server whose aliases are in `stage`. A connection may be stricter, never laxer in its list."""
    names: list[Tool] = [CANONICAL_TOOL]
    if stage != "strict":
        names += ["memory_terminal", "memory_terminal_vscode"]
    return [_spec(contract, name, stage) for name in names]


def _spec(contract: Contract, name: Tool, stage: Stage) -> ToolSpec:
    title, about = _ABOUT[name]
    return ToolSpec(
        name=name,
        title=title,
        description=about,
        input_schema=input_schema(name, stage),
        output_schema=output_schema(),
        family="contract",
        run=_run(contract, name),
        schema_version=SCHEMA_VERSION,
        default_timeout_ms=DEFAULT_TIMEOUT_MS,
        self_timed=True,
        slack_ms=MAX_TIMEOUT_MS + 300_000,
        checks_itself=True,
        annotations=Annotations(destructive=True, open_world=True),
        offered=None if name == CANONICAL_TOOL else _accepts_legacy,
    )


def _accepts_legacy(environ: Mapping[str, str]) -> bool:
    return parse_stage(environ) != "strict"


def _run(
    contract: Contract, name: Tool
) -> Callable[[dict[str, object], CallContext], Coroutine[Any, Any, ToolOutcome]]:
    async def run(arguments: dict[str, object], ctx: CallContext) -> ToolOutcome:
        answer = await contract.handle(arguments, ctx.caller, name)
        return ToolOutcome(answer.payload, is_error=not answer.ok)

    return run
