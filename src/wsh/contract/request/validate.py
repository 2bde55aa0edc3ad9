"""From a canonical document to a request that makes sense, or to the fields that do not.

First each field by itself (types, ranges, unknown names), then which fields go with which action and mode. The order of
checks is fixed, so that the same kind of mistake always gets the same code: action, then mode, then everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from wsh.contract.reply.fault import ContractFault, FieldHint, invalid_payload
from wsh.contract.request.alias import BY_LEGACY, FLAT_FIELDS, Resolution
from wsh.contract.request.model import MODES, ContractRequest

_TYPE_NAMES = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "missing": "is required",
    "extra_forbidden": "is not a field of this contract",
}


def validate(document: Mapping[str, object], resolution: Resolution) -> ContractRequest:
    """The request in `document`. Raises ContractFault with every field that is wrong, up to twenty."""
    _check_mode(document)
    try:
        request = ContractRequest.model_validate(dict(document))
    except ValidationError as problem:
        errors = problem.errors(include_url=False, include_context=True)
        raise invalid_payload([_hint(error) for error in errors[:20]]) from None
    hints = _coupling(request, resolution)
    if hints:
        raise invalid_payload(hints)
    return request


def _check_mode(document: Mapping[str, object]) -> None:
    """A mode that is text but none of ours has its own code."""
    invocation = document.get("invocation")
    mode = invocation.get("mode") if isinstance(invocation, Mapping) else None
    if isinstance(mode, str) and mode not in MODES:
        raise ContractFault(
            "PM_TERM_INVALID_MODE",
            f"There is no mode {mode[:64]!r}.",
            field="invocation.mode",
            given=mode[:64],
            allowed_modes=list(MODES),
        )


def _hint(error: ErrorDetails) -> FieldHint:
    field = ".".join(str(part) for part in error["loc"] if part != "[key]")
    problem = _TYPE_NAMES.get(error["type"], error["msg"])
    if error["type"] == "literal_error":
        problem = f"must be {error.get('ctx', {}).get('expected', 'one of the known values')}"
    elif problem and problem[0].isupper():
        problem = problem[0].lower() + problem[1:]
    return FieldHint(field, problem, _where_instead(error))


def _where_instead(error: ErrorDetails) -> str | None:
    if error["type"] != "extra_forbidden" or len(error["loc"]) != 1:
        return None
    moved = FLAT_FIELDS.get(str(error["loc"][0]))
    return f"Use {'.'.join(moved)}." if moved else None


def _coupling(request: ContractRequest, resolution: Resolution) -> list[FieldHint]:
    match request.action:
        case "execute":
            return _couple_execute(request, resolution)
        case "read_output" | "terminate":
            return _couple_follow_up(request)
        case "list":
            return _couple_list(request)


def _couple_execute(request: ContractRequest, resolution: Resolution) -> list[FieldHint]:
    hints: list[FieldHint] = []
    mode, intent = request.invocation.mode, request.invocation.intent
    execution, target, runtime = request.execution, request.target, request.runtime
    if mode is None:
        hints.append(FieldHint("invocation.mode", "is required for execute", f"One of {', '.join(MODES)}."))
    if intent is None:
        hints.append(FieldHint("invocation.intent", "is required for execute", "execute_command or open_only."))
    alias = BY_LEGACY.get(resolution.legacy_action or "")
    if alias is not None and alias.intent is not None and intent not in (None, alias.intent):
        hints.append(FieldHint("invocation.intent", f'must be {alias.intent} for the legacy action "{alias.legacy}"'))
    if intent == "execute_command" and (execution is None or execution.command is None):
        hints.append(FieldHint("execution.command", "is required for intent execute_command"))
    if intent == "open_only":
        if execution is not None and execution.command is not None:
            hints.append(FieldHint("execution.command", "must be absent for intent open_only"))
        if execution is not None and execution.args is not None:
            hints.append(FieldHint("execution.args", "must be absent for intent open_only"))
        if target is not None:
            hints.append(FieldHint("target", "must be absent for intent open_only", "open_only makes a new terminal."))
    if target is not None and target.cursor is not None:
        hints.append(FieldHint("target.cursor", "goes with read_output only"))
    if execution is not None and execution.sandbox is not None:
        hints += _couple_leaving(request)
    if mode == "headless":
        hints += _couple_headless(request)
    if mode == "interactive":
        hints += _couple_send(request, resolution)
    if request.compat.name is not None and (mode == "headless" or target is not None):
        hints.append(FieldHint("compat.name", "is the title of a new interactive terminal only"))
    if execution is not None and execution.args and _has_arguments(execution.command):
        problem = "must be one program when args are given"
        hints.append(FieldHint("execution.command", problem, "Put every argument into execution.args."))
    if target is not None and runtime.cwd is not None and mode == "interactive":
        hints.append(FieldHint("runtime.cwd", "cannot be set for a terminal that is already open"))
    return hints


def _has_arguments(command: str | None) -> bool:
    """Whether it is a command line rather than one program; a path may have blanks in it."""
    return command is not None and "/" not in command and any(char.isspace() for char in command)


def _couple_headless(request: ContractRequest) -> list[FieldHint]:
    hints: list[FieldHint] = []
    if request.invocation.intent == "open_only":
        hints.append(
            FieldHint("invocation.intent", "open_only needs mode interactive", "Headless mode has no terminal to open.")
        )
    if request.target is not None and request.target.terminal_id is not None:
        hints.append(FieldHint("target.terminal_id", "is forbidden for a new headless execute"))
    if request.target is not None and request.target.session_id is not None:
        hints.append(
            FieldHint(
                "target.session_id",
                "is forbidden for a new headless execute",
                "It goes with read_output and terminate.",
            )
        )
    for name in ("adapter_override", "binary_path", "spawn_timeout_ms"):
        if getattr(request.runtime, name) is not None:
            hints.append(FieldHint(f"runtime.{name}", "concerns the desktop, which headless mode never uses"))
    asks_nobody = "is about a person's answer, and headless mode asks nobody"
    if request.runtime.keep_pending is not None:
        hints.append(FieldHint("runtime.keep_pending", asks_nobody))
    if request.execution is not None and request.execution.note is not None:
        hints.append(FieldHint("execution.note", asks_nobody))
    return hints


def _couple_leaving(request: ContractRequest) -> list[FieldHint]:
    """Leaving a sandbox is asked of a person, for one new command, with a reason."""
    assert request.execution is not None
    hints: list[FieldHint] = []
    if request.invocation.mode == "headless":
        problem = "cannot be left in headless mode, which asks nobody"
        hints.append(FieldHint("execution.sandbox", problem, "Use mode interactive."))
    if request.invocation.intent == "open_only" or request.target is not None:
        problem = "can be left by a new command only, not by a terminal"
        hints.append(FieldHint("execution.sandbox", problem, "Use intent execute_command without a target."))
    if request.execution.note is None:
        problem = "is required to leave a sandbox: the person reads why"
        hints.append(FieldHint("execution.note", problem))
    return hints


def _couple_send(request: ContractRequest, resolution: Resolution) -> list[FieldHint]:
    target, execution = request.target, request.execution
    names_one = target is not None and (target.session_id is not None or target.terminal_id is not None)
    if resolution.legacy_action == "send" and not names_one:
        return [FieldHint("target.terminal_id", 'is required for the legacy action "send"')]
    if target is not None and not names_one and target.cursor is None:
        return [FieldHint("target", "must name a session_id or a terminal_id")]
    if names_one and execution is not None and execution.env is not None:
        return [FieldHint("execution.env", "cannot be set for a terminal that is already open")]
    return []


def _couple_follow_up(request: ContractRequest) -> list[FieldHint]:
    hints: list[FieldHint] = []
    target = request.target
    if target is None or (target.session_id is None and target.terminal_id is None):
        hints.append(FieldHint("target", f"{request.action} needs target.session_id or target.terminal_id"))
    if target is not None and target.cursor is not None and request.action == "terminate":
        hints.append(FieldHint("target.cursor", "goes with read_output only"))
    if request.execution is not None:
        hints.append(FieldHint("execution", f"must be absent for {request.action}"))
    return hints + _couple_no_start(request)


def _couple_list(request: ContractRequest) -> list[FieldHint]:
    hints: list[FieldHint] = []
    for name in ("execution", "target"):
        if getattr(request, name) is not None:
            hints.append(FieldHint(name, "must be absent for list"))
    return hints + _couple_no_start(request)


def _couple_no_start(request: ContractRequest) -> list[FieldHint]:
    """Fields that only mean something when a program is started."""
    hints: list[FieldHint] = []
    if request.invocation.intent is not None:
        hints.append(FieldHint("invocation.intent", "goes with execute only"))
    for name in ("cwd", "adapter_override", "binary_path", "spawn_timeout_ms", "keep_pending"):
        if getattr(request.runtime, name) is not None:
            hints.append(FieldHint(f"runtime.{name}", "goes with execute only"))
    if request.compat.name is not None:
        hints.append(FieldHint("compat.name", "goes with execute only"))
    return hints
