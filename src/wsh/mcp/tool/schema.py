"""Pieces of the tools' schemas that several share. Flat parameters with defaults in their descriptions."""

from __future__ import annotations

from typing import TypeAlias

from wsh.wire.json.object import JsonObject
from wsh.wire.model.element import NAMES

Schema: TypeAlias = JsonObject

MAX_WAIT_MS = 86_400_000


def arguments(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def result(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def text(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


def flag(description: str, default: bool = False) -> Schema:
    return {"type": "boolean", "description": description, "default": default}


def number(description: str, minimum: int, maximum: int, default: int | None = None) -> Schema:
    made: Schema = {"type": "integer", "description": description, "minimum": minimum, "maximum": maximum}
    return made | {"default": default} if default is not None else made


def choice(description: str, *choices: str, default: str | None = None) -> Schema:
    made: Schema = {"type": "string", "enum": list(choices), "description": description}
    return made | {"default": default} if default is not None else made


SESSION = text("Name of the session; `host/name` for one on another machine.", minLength=1, maxLength=129)


def on_session(*required: str, **properties: Schema) -> Schema:
    """Arguments of a tool about one session, which is named."""
    return arguments(["session", *required], session=SESSION, **properties)


FORMAT = choice(
    "`plain` gives each line as text and costs far fewer tokens; `styled` gives spans with colours and attributes.",
    "styled",
    "plain",
    default="styled",
)
TIMEOUT_MS = number("Silence that counts as idle, in milliseconds.", 0, MAX_WAIT_MS, 2000)
MAX_WAIT = number(
    "Overall deadline in milliseconds; the server caps it (300000 unless set otherwise). Past it the call fails with "
    "TOOL_TIMEOUT and nothing is stopped.",
    1,
    MAX_WAIT_MS,
    30_000,
)

_BYTE: Schema = {"type": "integer", "minimum": 0, "maximum": 255}
_RGB: Schema = {
    "type": "object",
    "properties": {"r": _BYTE, "g": _BYTE, "b": _BYTE},
    "required": ["r", "g", "b"],
    "additionalProperties": False,
}


def _colour(description: str, **more: Schema) -> Schema:
    """A text, or an object of one of several forms: with one list of types, which clients can convert."""
    return {
        "type": ["string", "object"],
        "description": description,
        "pattern": "^(?:#[0-9a-fA-F]{6}|[A-Za-z]+(?:[ _-][A-Za-z]+)?)$",
        "properties": {"indexed": _BYTE, "rgb": _RGB, **more},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }


_COLOURS = f"{', '.join(NAMES)}, the same with bright_, #rrggbb, or an object with indexed or rgb"
COLOR = _colour(f"A colour: {_COLOURS}.")
BACKGROUND = _colour(f"A colour: {_COLOURS}, or one with bg.", bg=COLOR)
SPANS: Schema = {
    "type": "array",
    "maxItems": 100_000,
    "description": "The text, as runs that look alike. A line feed in a text starts a new line of the element.",
    "items": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "id": {"type": "string", "minLength": 1, "maxLength": 64},
            "fg": COLOR,
            "bg": COLOR,
            "bold": {"type": "boolean"},
            "faint": {"type": "boolean"},
            "italic": {"type": "boolean"},
            "underline": {"type": "boolean"},
            "strikethrough": {"type": "boolean"},
            "inverse": {"type": "boolean"},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
}
Z = number("Order: higher is on top. Left out, a new element is above the others.", -(2**31), 2**31 - 1)
ELEMENT_ID = text("Id that the tool gave when the element was made.", minLength=1, maxLength=64)

LINES: Schema = {
    "type": "array",
    "description": "One entry per line: a text (plain) or a list of spans (styled).",
    "items": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
}
CURSOR: Schema = result(
    ["row", "col", "visible"], row={"type": "integer"}, col={"type": "integer"}, visible={"type": "boolean"}
)
SCREEN_PROPERTIES: dict[str, Schema] = {
    "lines": LINES,
    "cursor": CURSOR,
    "rows": {"type": "integer"},
    "cols": {"type": "integer"},
    "mode": choice("`alt` while the program or an agent has the alternate screen.", "normal", "alt"),
    "alternate_active": {"type": "boolean"},
    "first_line_index": {"type": "integer", "description": "Lasting number of the first row's line."},
    "total_lines": {"type": "integer", "description": "Lines there have ever been."},
    "epoch": {"type": "integer", "description": "Grows when line numbering starts again."},
}
SCREEN_REQUIRED = ["lines", "cursor", "rows", "cols", "mode"]
GENERATION: Schema = {
    "type": "integer",
    "description": "Counts output. Give it to wsh_await_quiesce to wait for what comes after this moment.",
}
STATE_PROPERTIES: dict[str, Schema] = {
    "generation": GENERATION,
    "running": {"type": "boolean", "description": "Whether the session's program runs."},
    "exit_code": {"type": ["integer", "null"]},
    "title": {"type": "string"},
    "cwd": {"type": "string"},
}
SANDBOX: Schema = {
    "type": "object",
    "description": "What holds the session in; absent for an open one.",
    "properties": {
        "profile": {"type": "string"},
        "backend": {"type": "string"},
        "weaker": {"type": "array", "items": {"type": "string"}},
    },
}
SUCCESS: Schema = {"type": "boolean", "const": True}
