"""The compatibility layer: legacy actions and flat legacy fields become canonical requests, here and nowhere else.

Deterministic and one-way. Three stages, named by `WSH_ALIAS_STAGE`: `compat` accepts aliases and says that one was
applied, `warn` adds a deprecation to every answer, `strict` refuses them with how to say it now. The two legacy tools are
the same thing under an older name: they rewrite, and go through the same dispatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from wsh.contract.reply.fault import ContractFault, FieldHint, bad_field, invalid_payload
from wsh.contract.request.model import ACTIONS, Action, Intent, Mode
from wsh.contract.request.stage import Stage
from wsh.wire.json.object import JsonObject

Tool: TypeAlias = Literal["memory_terminal_interactive", "memory_terminal", "memory_terminal_vscode"]
CANONICAL_TOOL: Tool = "memory_terminal_interactive"


@dataclass(frozen=True)
class Alias:
    """One row of the migration map."""

    legacy: str
    canonical: Action
    intent: Intent | None
    note: str
    replacement: str


ALIASES: tuple[Alias, ...] = (
    Alias(
        "run",
        "execute",
        "execute_command",
        "command execution semantics are kept",
        'action "execute" with invocation.intent "execute_command"; command fields move under execution',
    ),
    Alias(
        "send",
        "execute",
        "execute_command",
        "an interactive execute against an existing terminal",
        'action "execute" with target.terminal_id',
    ),
    Alias(
        "create",
        "execute",
        "open_only",
        "opens a terminal without a command",
        'action "execute" with invocation.intent "open_only"',
    ),
    Alias("kill", "terminate", None, "the session is kept as the target", 'action "terminate" with target.session_id'),
    Alias(
        "close", "terminate", None, "the terminal is kept as the target", 'action "terminate" with target.terminal_id'
    ),
    Alias("list", "list", None, "no change", 'action "list"'),
)
BY_LEGACY: dict[str, Alias] = {alias.legacy: alias for alias in ALIASES}
TRUE_ALIASES: tuple[str, ...] = tuple(alias.legacy for alias in ALIASES if alias.legacy not in ACTIONS)

FLAT_FIELDS: dict[str, tuple[str, str]] = {
    "command": ("execution", "command"),
    "args": ("execution", "args"),
    "env": ("execution", "env"),
    "cwd": ("runtime", "cwd"),
    "timeout": ("runtime", "timeout_ms"),
    "workspace_id": ("runtime", "workspace_id"),
    "session_id": ("target", "session_id"),
    "terminal_id": ("target", "terminal_id"),
    "name": ("compat", "name"),
}
"""Where each flat legacy field stands in a canonical request."""

LEGACY_TOOL_ACTIONS: dict[Tool, tuple[str, ...]] = {
    "memory_terminal": ("run", "read_output", "kill", "list"),
    "memory_terminal_vscode": ("create", "send", "close", "list"),
}
LEGACY_TOOL_MODE: dict[Tool, Mode] = {"memory_terminal": "headless", "memory_terminal_vscode": "interactive"}


@dataclass(frozen=True)
class Resolution:
    """How the action was understood; becomes `resolved` (and `compat`) of the response."""

    canonical_action: Action | None
    alias_applied: bool = False
    legacy_action: str | None = None
    stage: Stage = "compat"
    tool: Tool = CANONICAL_TOOL
    given: str | None = None
    """The action as it was sent, if it was text."""

    @property
    def is_legacy(self) -> bool:
        return self.alias_applied or self.tool != CANONICAL_TOOL

    def to_compat(self) -> JsonObject | None:
        """The response's `compat`: present whenever a legacy shape was used."""
        if not self.is_legacy:
            return None
        compat: JsonObject = {"alias_applied": self.alias_applied}
        if self.stage == "warn":
            compat["deprecation"] = {
                "message": f"{self._spoken()} is deprecated and will be refused; "
                f"use {CANONICAL_TOOL} with {replacement_for(self.legacy_action or self.given)}.",
                "replacement": replacement_for(self.legacy_action or self.given),
                "tool": CANONICAL_TOOL,
            }
        return compat

    def _spoken(self) -> str:
        if self.tool != CANONICAL_TOOL:
            return f"The tool {self.tool}"
        return f'The action "{self.legacy_action}"'


def replacement_for(action: str | None) -> str:
    alias = BY_LEGACY.get(action or "")
    return alias.replacement if alias else f'action "{action}"' if action in ACTIONS else "a canonical action"


def resolve(raw: Mapping[str, object], tool: Tool, stage: Stage) -> tuple[Resolution, ContractFault | None]:
    """What the action means. The fault, if any, is what to answer; the resolution says as much as could be known."""
    action = raw.get("action")
    resolution = Resolution(None, stage=stage, tool=tool, given=action if isinstance(action, str) else None)
    allowed = LEGACY_TOOL_ACTIONS.get(tool, ACTIONS)
    if not isinstance(action, str):
        problem = "is required" if "action" not in raw or action is None else "must be a text"
        return resolution, bad_field("action", problem, f"One of {', '.join(allowed)}.", allowed_actions=list(allowed))
    alias = BY_LEGACY.get(action)
    if action in ACTIONS:
        resolution = replace(resolution, canonical_action=_canonical(action))
    elif alias is not None:
        resolution = replace(resolution, canonical_action=alias.canonical, alias_applied=True, legacy_action=action)
    else:
        return resolution, _unknown_action(action, tool)
    if tool != CANONICAL_TOOL:
        if stage == "strict":
            return resolution, _retired(f"The tool {tool}", action, tool)
        if action not in allowed:
            return resolution, _unknown_action(action, tool)
        return resolution, None
    if alias is not None and resolution.alias_applied and stage == "strict":
        return resolution, _retired(f'The action "{action}"', action, tool)
    return _resolve_compat(raw, resolution)


def _resolve_compat(raw: Mapping[str, object], resolution: Resolution) -> tuple[Resolution, ContractFault | None]:
    """`compat.legacy_action`: a bridge says what it translated. It must map to the action that was sent."""
    compat = raw.get("compat")
    legacy = compat.get("legacy_action") if isinstance(compat, Mapping) else None
    if not isinstance(legacy, str):
        return resolution, None
    alias = BY_LEGACY.get(legacy)
    if alias is None:
        return resolution, _unknown_action(legacy, resolution.tool, "compat.legacy_action")
    if resolution.alias_applied:
        if legacy == resolution.legacy_action:
            return resolution, None
        return resolution, bad_field("compat.legacy_action", f'is "{legacy}", but the action is "{resolution.given}"')
    if alias.canonical != resolution.canonical_action:
        problem = f'"{legacy}" means {alias.canonical}, but the action is {resolution.canonical_action}'
        return resolution, bad_field("compat.legacy_action", problem)
    if legacy == resolution.canonical_action:
        return resolution, None
    resolution = replace(resolution, alias_applied=True, legacy_action=legacy)
    if resolution.stage == "strict":
        return resolution, _retired(f'The action "{legacy}"', legacy, resolution.tool)
    return resolution, None


def to_canonical(raw: Mapping[str, object], resolution: Resolution) -> JsonObject:
    """The canonical request that a raw one means. Raises ContractFault; never changes `raw`."""
    canonical = {key: value for key, value in raw.items() if key not in FLAT_FIELDS}
    canonical["action"] = resolution.canonical_action
    flat = [key for key in raw if key in FLAT_FIELDS]
    translated_here = resolution.tool != CANONICAL_TOOL or resolution.given in TRUE_ALIASES
    if flat and not translated_here:
        raise invalid_payload(
            [FieldHint(key, "is a legacy field", f"Use {'.'.join(FLAT_FIELDS[key])}.") for key in flat]
        )
    for key in flat:
        _place(canonical, key, raw[key])
    if translated_here:
        _default_invocation(canonical, resolution)
    return canonical


def _place(canonical: JsonObject, key: str, value: object) -> None:
    part, name = FLAT_FIELDS[key]
    holder = canonical.get(part)
    if holder is None:
        holder = {}
    if not isinstance(holder, Mapping):
        raise bad_field(part, "must be an object")
    if name in holder:
        raise bad_field(key, f"is given twice, also as {part}.{name}", f"Keep {part}.{name}.")
    canonical[part] = {**holder, name: value}


def _default_invocation(canonical: JsonObject, resolution: Resolution) -> None:
    given = canonical.get("invocation")
    if given is not None and not isinstance(given, Mapping):
        return  # refused by type later
    invocation = dict(given or {})
    alias = BY_LEGACY.get(resolution.legacy_action or "")
    forced = LEGACY_TOOL_MODE.get(resolution.tool)
    mode = invocation.get("mode")
    if forced is not None:
        if mode is not None and mode != forced:
            raise ContractFault(
                "PM_TERM_INVALID_MODE",
                f"{resolution.tool} is {forced} only.",
                given=mode if isinstance(mode, str) else None,
                allowed_modes=[forced],
                hint=f"Use {CANONICAL_TOOL} for the other mode.",
            )
        invocation["mode"] = forced
    elif resolution.canonical_action == "execute" and mode is None:
        invocation["mode"] = "interactive"
    if alias is not None and alias.intent is not None:
        if invocation.get("intent") not in (None, alias.intent):
            raise bad_field("invocation.intent", f'must be {alias.intent} with the action "{alias.legacy}"')
        invocation["intent"] = alias.intent
    if invocation:
        canonical["invocation"] = invocation


def _canonical(action: str) -> Action:
    for known in ACTIONS:
        if known == action:
            return known
    raise AssertionError(action)


def _unknown_action(action: str, tool: Tool, field: str = "action") -> ContractFault:
    allowed = LEGACY_TOOL_ACTIONS.get(tool, ACTIONS)
    known = BY_LEGACY.get(action)
    hint = f"Use one of {', '.join(allowed)}."
    if tool != CANONICAL_TOOL and (known is not None or action in ACTIONS):
        hint = f"{tool} takes {', '.join(allowed)}; use {CANONICAL_TOOL} with {replacement_for(action)}."
    return ContractFault(
        "PM_TERM_INVALID_ACTION",
        f"There is no action {action[:64]!r} here.",
        field=field,
        given=action[:64],
        allowed_actions=list(allowed),
        migration_hint=hint,
    )


def _retired(what: str, action: str, tool: Tool) -> ContractFault:
    alias = BY_LEGACY.get(action)
    return ContractFault(
        "PM_TERM_INVALID_ACTION",
        f"{what} is no longer accepted.",
        field="action",
        given=action,
        allowed_actions=list(ACTIONS),
        canonical_action=alias.canonical if alias else action,
        migration_hint=f"Use {CANONICAL_TOOL} with {replacement_for(action)}.",
        stage="strict",
        **({"tool": tool} if tool != CANONICAL_TOOL else {}),
    )
