"""JSON Schemas of the three tools, made from the models and the alias table; nothing is typed twice."""

from __future__ import annotations

from functools import cache

from wsh.contract.reply.taxonomy import TAXONOMY
from wsh.contract.request.alias import CANONICAL_TOOL, FLAT_FIELDS, LEGACY_TOOL_ACTIONS, TRUE_ALIASES, Tool
from wsh.contract.request.model import ACTIONS, Compat, Correlation, Execution, Invocation, Part, RequestTarget, Runtime
from wsh.contract.request.stage import Stage
from wsh.wire.json.object import JsonObject

PARTS: dict[str, type[Part]] = {
    "invocation": Invocation,
    "correlation": Correlation,
    "runtime": Runtime,
    "execution": Execution,
    "target": RequestTarget,
    "compat": Compat,
}
_ABOUT_PARTS = {
    "invocation": "How: mode and intent.",
    "correlation": "Ids that tie request, answer, audit and logs together.",
    "runtime": "Where, for how long, and over which desktop.",
    "execution": "What to run. Only with execute.",
    "target": "Which session or terminal: for read_output, terminate, and for typing into an open terminal.",
    "compat": "What a bridge for older callers wants to say.",
}


def input_schema(tool: Tool, stage: Stage) -> dict[str, object]:
    """What `tool` accepts in `stage`. Which fields go together is checked, and explained, by the contract itself."""
    if tool == CANONICAL_TOOL:
        actions = [*ACTIONS, *(TRUE_ALIASES if stage != "strict" else ())]
        about = "execute, read_output, terminate or list."
        if stage != "strict":
            about += f" Legacy and deprecated: {', '.join(TRUE_ALIASES)}."
    else:
        actions = list(LEGACY_TOOL_ACTIONS[tool])
        about = f"One of {', '.join(actions)}."
    properties: JsonObject = {"action": {"type": "string", "enum": actions, "description": about}}
    for name, part in PARTS.items():
        properties[name] = _part_schema(part) | {"description": _ABOUT_PARTS[name]}
    if stage != "strict" or tool != CANONICAL_TOOL:
        for flat, (name, key) in FLAT_FIELDS.items():
            where = (
                f"Legacy: {name}.{key}. Only with {', '.join(TRUE_ALIASES)}."
                if tool == CANONICAL_TOOL
                else (f"Becomes {name}.{key}.")
            )
            properties[flat] = dict(properties[name]["properties"][key]) | {"description": where}
    return {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}


@cache
def _part_schema(part: type[Part]) -> dict[str, object]:
    raw = part.model_json_schema()
    properties = {name: _plain(schema) for name, schema in raw.get("properties", {}).items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _plain(schema: JsonObject) -> dict[str, object]:
    """Without the null that stands for "left out", and without titles and defaults that say nothing."""
    schema = {key: value for key, value in schema.items() if key not in {"title", "default"}}
    options = [option for option in schema.pop("anyOf", []) if option.get("type") != "null"]
    for option in options[:1]:
        schema = {**_plain(option), **schema}
    if "propertyNames" in schema:
        schema["propertyNames"] = _plain(schema["propertyNames"])
    return schema


def output_schema() -> dict[str, object]:
    """Success and failure in one: `success` says which."""
    text = {"type": "string"}
    maybe_text = {"type": ["string", "null"]}
    identity = {"type": "object", "properties": {"session_id": text, "terminal_id": text}}
    result = {
        "type": "object",
        "properties": {
            "authorization": {"type": "string", "enum": ["allowed", "allowed_with_warning", "blocked"]},
            "warning": text,
            "stdout": text,
            "stderr": text,
            "exit_code": {"type": ["integer", "null"]},
            "signal": text,
            "running": {"type": "boolean"},
            "terminal_running": {
                "type": "boolean",
                "description": "Whether the terminal that was typed into still runs.",
            },
            "finished_by": {
                "type": "string",
                "enum": ["command", "prompt", "quiet", "exit"],
                "description": "What ended the wait for a line that was typed.",
            },
            "duration_ms": {"type": "number"},
            "omitted_bytes": {"type": "integer", "description": "Of stdout's middle, left out because it is long."},
            "line": {
                "type": "object",
                "description": "The line that was typed last into this terminal, and its end as far as it is known.",
                "properties": {
                    "command": text,
                    "running": {"type": "boolean"},
                    "exit_code": {"type": ["integer", "null"]},
                    "finished_by": text,
                    "duration_ms": {"type": "number"},
                    "approval": text,
                },
            },
            "cursor": {"type": "integer"},
            "next_cursor": {"type": "integer", "description": "Give it as target.cursor to read on from here."},
            "dropped_bytes": {"type": "integer", "description": "Asked for, and no longer kept."},
            "more": {"type": "boolean", "description": "Kept output lies beyond next_cursor already."},
            "terminated": {"type": "boolean"},
            "survivors": {"type": "array", "items": {"type": "integer"}},
            "approval": {
                "type": "string",
                "enum": ["pending", "approved", "declined", "expired", "withdrawn", "refused"],
                "description": "What the person said. pending: nobody has answered; call read_output later.",
            },
            "approval_id": text,
            "approval_left_ms": {"type": "integer", "description": "How long it can still be answered."},
            "approved_by": maybe_text,
            "approval_scope": maybe_text,
            "edited_argv": {"type": "array", "items": text},
            "items": {"type": "array", "items": {"type": "object"}},
        },
    }
    return {
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "action": maybe_text,
            "status": {"type": "string", "enum": ["accepted", "completed", "failed"]},
            "correlation": {
                "type": "object",
                "properties": {"request_id": text, "trace_id": text, "client_request_id": text},
                "required": ["request_id", "trace_id"],
            },
            "resolved": {
                "type": "object",
                "properties": {
                    "canonical_action": maybe_text,
                    "alias_applied": {"type": "boolean"},
                    "legacy_action": maybe_text,
                    "mode": maybe_text,
                },
                "required": ["canonical_action", "alias_applied", "legacy_action", "mode"],
            },
            "compat": {
                "type": "object",
                "properties": {"alias_applied": {"type": "boolean"}, "deprecation": {"type": "object"}},
            },
            "identity": identity,
            "result": result,
            "error": {
                "type": ["object", "null"],
                "properties": {
                    "code": {"type": "string", "enum": [entry.code for entry in TAXONOMY]},
                    "category": {"type": "string", "enum": sorted({entry.category for entry in TAXONOMY})},
                    "message": text,
                    "retriable": {"type": "boolean"},
                    "details": {"type": "object"},
                },
                "required": ["code", "category", "message", "retriable", "details"],
            },
            "fallback": {
                "type": "object",
                "properties": {
                    "strategy": {"type": "string", "enum": sorted({entry.strategy for entry in TAXONOMY})},
                    "next_action": maybe_text,
                    "recommended_mode": {
                        "type": "string",
                        "enum": ["headless"],
                        "description": "Only where the policy would allow the same request there.",
                    },
                    "user_message": text,
                    "can_auto_retry": {"type": "boolean", "const": False},
                },
                "required": ["strategy", "next_action", "user_message", "can_auto_retry"],
            },
        },
        "required": ["success", "action", "status", "correlation", "resolved"],
    }
