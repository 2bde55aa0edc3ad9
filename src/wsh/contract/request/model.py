"""The canonical request, as types. Strict: a text is no number, and an unknown field is refused.

What goes with which action is in `validate`; this file knows single fields only. The JSON Schemas of the tools are made
from these models.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Action: TypeAlias = Literal["execute", "read_output", "terminate", "list"]
Mode: TypeAlias = Literal["interactive", "headless"]
Intent: TypeAlias = Literal["open_only", "execute_command"]
Surface: TypeAlias = Literal["server", "extension", "dashboard", "chat_button"]
AdapterOverride: TypeAlias = Literal["local", "bundled", "container_bridge", "auto"]

ACTIONS: tuple[Action, ...] = ("execute", "read_output", "terminate", "list")
MODES: tuple[Mode, ...] = ("interactive", "headless")
ADAPTER_OVERRIDES: tuple[AdapterOverride, ...] = ("local", "bundled", "container_bridge", "auto")

DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 3_600_000
DEFAULT_SPAWN_TIMEOUT_MS = 8_000
MAX_SPAWN_TIMEOUT_MS = 30_000
MAX_COMMAND_CHARS = 256 * 1024


def _no_nul(value: str) -> str:
    if "\x00" in value:
        raise PydanticCustomError("nul", "must not contain a NUL character")
    return value


def _env_name(value: str) -> str:
    if not value or "=" in value or "\x00" in value:
        raise PydanticCustomError("env_name", "is not usable as the name of an environment variable")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return value


Word: TypeAlias = Annotated[str, AfterValidator(_no_nul), Field(max_length=MAX_COMMAND_CHARS)]
CommandText: TypeAlias = Annotated[
    str, AfterValidator(_no_nul), AfterValidator(_not_blank), Field(max_length=MAX_COMMAND_CHARS)
]
EnvName: TypeAlias = Annotated[str, AfterValidator(_env_name), Field(max_length=4096)]
PathText: TypeAlias = Annotated[str, AfterValidator(_no_nul), Field(min_length=1, max_length=4096)]
CorrelationId: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+=-]*$")
]
ClientId: TypeAlias = Annotated[str, Field(min_length=1, max_length=256)]
IdentityId: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
Label: TypeAlias = Annotated[str, AfterValidator(_no_nul), Field(min_length=1, max_length=256)]


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class Invocation(Part):
    mode: Mode | None = Field(
        default=None,
        description="interactive: a person at the desktop sees the command and decides. headless: runs at once if the "
        "policy's allowlist covers it, never otherwise. Required for execute; a filter for list.",
    )
    intent: Intent | None = Field(
        default=None,
        description="execute_command runs execution.command; open_only opens a terminal without a command "
        "(interactive only). Required for execute.",
    )


class Correlation(Part):
    request_id: CorrelationId | None = Field(default=None, description="Names this request; made up if left out.")
    trace_id: CorrelationId | None = Field(
        default=None, description="Carried unchanged everywhere; made up if left out."
    )
    client_request_id: ClientId | None = Field(default=None, description="Your own id; given back as it is.")


class Runtime(Part):
    workspace_id: Label | None = Field(default=None, description="Scopes list, policy rules and the audit.")
    cwd: PathText | None = Field(default=None, description="Working directory of a new command or terminal.")
    timeout_ms: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS)] | None = Field(
        default=None,
        description=f"How long this call waits (default {DEFAULT_TIMEOUT_MS}). A command that still runs then goes on, "
        "and a request that nobody answered yet goes on waiting; the answer is status accepted. A list says of terminals that could not be asked that they are not reachable.",
    )
    adapter_override: AdapterOverride | None = Field(
        default=None, description="Which desktop runtime an interactive execute uses."
    )
    binary_path: PathText | None = Field(
        default=None, description="Absolute path of the desktop program; must be one that the operator has listed."
    )
    keep_pending: bool | None = Field(
        default=None,
        description="With a request that waits for a person: true keeps it although its caller goes away.",
    )
    spawn_timeout_ms: Annotated[int, Field(ge=1, le=MAX_SPAWN_TIMEOUT_MS)] | None = Field(
        default=None,
        description=f"How long a started desktop may take to be ready (default {DEFAULT_SPAWN_TIMEOUT_MS}).",
    )


class Execution(Part):
    command: CommandText | None = Field(
        default=None,
        description="With args: one program. Without: a command line; headless accepts literal words only.",
    )
    args: Annotated[list[Word], Field(max_length=4096)] | None = Field(
        default=None, description="Arguments of the program."
    )
    env: dict[EnvName, Word] | None = Field(default=None, description="Environment variables to set.")
    note: Annotated[str, AfterValidator(_no_nul), Field(min_length=1, max_length=2000)] | None = Field(
        default=None, description="Why, in your own words, for the person who decides; shown as your claim."
    )
    sandbox: Literal["off"] | None = Field(
        default=None,
        description="off: ask the person to run this one command without the sandbox that agents get; wants note.",
    )


class RequestTarget(Part):
    session_id: IdentityId | None = None
    terminal_id: IdentityId | None = None
    cursor: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="read_output: where to go on, from an earlier next_cursor; left out: the oldest kept byte.",
    )


class Compat(Part):
    legacy_action: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="The legacy action that a bridge translated into this request."
    )
    caller_surface: Surface | None = Field(default=None, description="Where the call comes from; scopes list.")
    name: Label | None = Field(default=None, description="Title of a terminal that is opened.")


class ContractRequest(Part):
    """One canonical request."""

    action: Action
    invocation: Invocation = Invocation()
    correlation: Correlation = Correlation()
    runtime: Runtime = Runtime()
    execution: Execution | None = None
    target: RequestTarget | None = None
    compat: Compat = Compat()

    @property
    def timeout_ms(self) -> int:
        return self.runtime.timeout_ms or DEFAULT_TIMEOUT_MS
