"""`execute_command` as agents see it: the answer is YAML, and hints name tools that the client has."""

from __future__ import annotations

from collections.abc import Sequence

from wsh.mcp.tool.declare import OperationTool, ToolCall
from wsh.operation.execute import ExecuteParams, execute_command
from wsh.wire.json.object import JsonObject
from wsh.wire.tool import CAPABILITY_MISSING, Annotations, ToolFailure, ToolOutcome

DESCRIPTION = (
    "Run one program to its end and return its exit code, stdout and stderr as YAML. This tool is ONLY for "
    "non-interactive commands. Interactive commands (editors, pagers, REPLs, prompts for passwords or "
    "confirmation) are "
    "not supported: stdin is closed and there is no terminal. No shell is involved, so pipes, redirections, variables, "
    "globs and command lists are refused; quotes make literal arguments. Only programs that the operator lists in "
    "ALLOWED_COMMANDS run, and only in folders within ALLOWED_CWD_ROOTS if that is set. A non-zero exit code is a "
    "result, not an error."
)
_MAX_TIMEOUT_MS = 24 * 3600 * 1000


def declare_execute(timeout_ms: int) -> OperationTool:
    """`timeout_ms` is how long a program may take where the call does not say it."""
    return OperationTool(
        execute_command.name,
        "Run a non-interactive command",
        DESCRIPTION,
        _describe_input(timeout_ms),
        _OUTPUT,
        _spell,
        (execute_command,),
        schema_version=6,
        default_timeout_ms=timeout_ms,
        timeout_argument="timeout_ms",
        timeout_spelling="timeoutMs",
        slack_ms=15_000,
        annotations=Annotations(destructive=True, open_world=True),
        family="exec",
    )


async def _spell(call: ToolCall) -> ToolOutcome:
    given = call.pick("command", "cwd", "output_of", "stream", "from_line", "search", "sandbox", "reason")
    params = ExecuteParams.model_construct(**given, timeout_ms=call.context.timeout_ms)
    try:
        fields: JsonObject = await call.make(execute_command, params)
    except ToolFailure as problem:
        if problem.code == CAPABILITY_MISSING:
            problem.hint = f"{problem.hint} {_say_where(call.context.toolsets)}"
        raise
    if "stdout_dropped_bytes" in fields or "stderr_dropped_bytes" in fields:
        fields["rest"] = _say_rest(fields.get("output_of"), call.context.toolsets)
    if "note" in fields:
        fields["note"] = f"{fields['note']} {_say_where(call.context.toolsets)}"
    from wsh.contract.reply.yaml_text import to_yaml

    return ToolOutcome(fields, text=to_yaml(fields))


def _describe_input(timeout_ms: int) -> JsonObject:
    return {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "description": "The program and its arguments, separated by blanks; quotes and backslashes work.",
            },
            "cwd": {
                "type": "string",
                "minLength": 1,
                "description": "Working directory; a relative one starts from the caller's own.",
            },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_TIMEOUT_MS,
                "description": "Deadline, after which the program and all it started are ended; "
                f"{timeout_ms} if left out.",
            },
            "timeoutMs": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_TIMEOUT_MS,
                "description": "Another spelling of timeout_ms.",
            },
            "output_of": {
                "type": "string",
                "minLength": 1,
                "maxLength": 128,
                "description": "Instead of command: read the output of an earlier call whose answer gave this handle.",
            },
            "stream": {
                "type": "string",
                "enum": ["stdout", "stderr"],
                "description": "With output_of: which stream; stdout if left out.",
            },
            "from_line": {"type": "integer", "minimum": 1, "description": "With output_of: the first line to read."},
            "search": {
                "type": "string",
                "minLength": 1,
                "maxLength": 4096,
                "description": "With output_of: only lines with this text, each behind its number.",
            },
            "sandbox": {
                "type": "string",
                "enum": ["off"],
                "description": "Ask a person to run this one command without the sandbox; with reason.",
            },
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 2000,
                "description": "Why it must leave the sandbox; the person reads it.",
            },
        },
        "additionalProperties": False,
    }


_OUTPUT: JsonObject = {
    "type": "object",
    "properties": {
        "exit_code": {"type": ["integer", "null"]},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "signal": {"type": "string", "description": "The signal that ended it, if one did."},
        "stdout_dropped_bytes": {"type": "integer", "description": "Oldest bytes that did not fit."},
        "stderr_dropped_bytes": {"type": "integer", "description": "Oldest bytes that did not fit."},
        "sandbox_denied": {
            "type": "object",
            "description": "It failed in a sandbox: the line that looks like a refusal by it, and how to ask for it.",
        },
        "outside": {
            "type": "object",
            "description": "With sandbox: whether the person has answered (approval), and what to do while not.",
        },
        "note": {"type": "string", "description": "It drew a screen, which nobody sees here."},
        "output_of": {"type": "string", "description": "The handle that reads what did not fit."},
        "rest": {"type": "string", "description": "How to read what did not fit."},
        "first_line": {"type": "integer", "description": "With output_of: where this page begins."},
        "total_lines": {"type": "integer", "description": "With output_of: lines that are kept."},
        "next_line": {"type": "integer", "description": "With output_of: where the next page begins, if there is one."},
    },
    "required": ["exit_code", "stdout", "stderr"],
}


def _say_where(toolsets: Sequence[str]) -> str:
    """Where an interactive program runs, with the tools that this client has."""
    if "lean" in toolsets:
        return "Run it with run, and drive it with type."
    if "terminal" in toolsets:
        return "Run it in a session: wsh_run_command, then wsh_send_input."
    if "contract" in toolsets:
        return "Ask for it with memory_terminal_interactive, mode interactive."
    return "Ask the person to run it in a terminal."


def _say_rest(handle: str | None, toolsets: Sequence[str]) -> str:
    """How the whole of a long output is read, with the tools that this client has."""
    if handle is not None:
        return f'execute_command {{"output_of": "{handle}", "from_line": 1}} reads all of it by lines; "search" finds text in it.'
    if "lean" in toolsets:
        return "Run it with run; look reads its whole output by range and search."
    if "terminal" in toolsets:
        return "Run it in a session with wsh_run_command; wsh_get_scrollback and the resource of its command_id read all of it."
    return "Ask the program for less at a time, or have it write into a file and read parts of that."
