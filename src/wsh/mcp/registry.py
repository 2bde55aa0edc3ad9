"""The tools of one server: what they are called, what they accept, in which order they are listed.

One registration per tool. Everything that is said about a tool elsewhere (definitions on the wire, the committed
snapshot, the reference page) is made from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pydantic_core

from wsh.mcp.near import find_near
from wsh.mcp.validate import Validator
from wsh.wire.json.handshake import FAMILIES, TOOLSETS
from wsh.wire.json.object import JsonObject
from wsh.wire.tool import Family, ToolSpec
from wsh.wire.version import describe_tooling

SCHEMA_VERSION_META = "wsh/schemaVersion"
TOOLING_VERSION_META = "wsh/toolingVersion"
FAMILY_META = "wsh/family"
TIMEOUT_META = "wsh/defaultTimeoutMs"

_FAILURE_PROPERTIES: JsonObject = {
    "message": {"type": "string", "description": "On failure: what happened, for people."},
    "code": {"type": "string", "description": "On failure: the stable code."},
    "hint": {"type": "string", "description": "On failure: what to try next."},
}


@dataclass(frozen=True)
class Tool:
    """A `ToolSpec` with what is derived from it once."""

    spec: ToolSpec
    validator: Validator = field(repr=False)

    @cached_property
    def definition(self) -> JsonObject:
        """As `tools/list` shows it, versions included."""
        spec = self.spec
        hints = spec.annotations
        if spec.family == "lean":  # paid for by every conversation: nothing that the model does not need
            return {
                "name": spec.name,
                "description": spec.description,
                "inputSchema": dict(spec.input_schema),
                "annotations": {"readOnlyHint": True} if hints.read_only else {"destructiveHint": hints.destructive},
            }
        definition: JsonObject = {
            "name": spec.name,
            "title": spec.title,
            "description": spec.description,
            "inputSchema": dict(spec.input_schema),
            "annotations": {
                "title": spec.title,
                "readOnlyHint": hints.read_only,
                "destructiveHint": hints.destructive,
                "idempotentHint": hints.idempotent,
                "openWorldHint": hints.open_world,
            },
            "_meta": {
                **self.versions,
                SCHEMA_VERSION_META: spec.schema_version,
                TOOLING_VERSION_META: describe_tooling(),
                FAMILY_META: spec.family,
                TIMEOUT_META: spec.default_timeout_ms,
            },
        }
        if spec.output_schema is not None:
            definition["outputSchema"] = with_failure(spec.output_schema)
        return definition

    @property
    def versions(self) -> JsonObject:
        return {"schemaVersion": self.spec.schema_version, "toolingVersion": describe_tooling()}


def with_failure(schema: Any) -> JsonObject:
    """An output schema that a failure fits as well: clients check `structuredContent` of failures against it, too."""
    widened = dict(schema)
    required = widened.pop("required", [])
    widened["properties"] = dict(widened.get("properties", {}))
    for name, entry in _FAILURE_PROPERTIES.items():
        widened["properties"].setdefault(name, entry)
    shapes = widened.pop("anyOf", None) or [{"required": list(required)}]
    widened["anyOf"] = [*shapes, {"required": ["message", "code"]}]
    return widened


class Registry:
    """Tools in the order of their families, and within a family in the order they were given."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        given = list(specs)
        ordered = [spec for family in TOOLSETS for spec in given if spec.family == family]
        self._tools: dict[str, Tool] = {}
        for spec in ordered:
            if spec.name in self._tools:
                raise ValueError(f"the tool {spec.name} is registered twice")
            if spec.input_schema.get("additionalProperties") is not False:
                raise ValueError(f"the tool {spec.name} must refuse unknown arguments")
            self._tools[spec.name] = Tool(spec, Validator(spec.input_schema))

    def list_tools(
        self, families: Sequence[Family] | None = None, environ: Mapping[str, str] | None = None
    ) -> list[Tool]:
        """Tools of the families; with `environ`, only what a connection with these governing variables is offered."""
        found = [t for t in self._tools.values() if families is None or t.spec.family in families]
        if environ is None:
            return found
        return [t for t in found if t.spec.offered is None or t.spec.offered(environ)]

    def find_tool(self, name: str, families: Sequence[Family] | None = None) -> Tool | None:
        tool = self._tools.get(name)
        return tool if tool is not None and (families is None or tool.spec.family in families) else None

    def find_near(self, name: str, families: Sequence[Family] | None = None) -> str | None:
        return find_near(name, [tool.spec.name for tool in self.list_tools(families)])


def parse_toolsets(names: Iterable[str]) -> tuple[Family, ...]:
    """Families from a setting or a flag, in the fixed order. ValueError names what is not one."""
    wanted = {name.strip() for name in names if name.strip()}
    unknown = sorted(wanted - set(TOOLSETS))
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: not a toolset; there are {', '.join(TOOLSETS)}")
    return tuple(family for family in TOOLSETS if family in wanted) or FAMILIES


def to_json(value: object) -> str:
    try:
        return pydantic_core.to_json(value, inf_nan_mode="null").decode()
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        # Lone surrogates, which only an escape can carry.
        return json.dumps(value, separators=(",", ":"))
