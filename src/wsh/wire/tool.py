"""One tool of the MCP surface, as the room that owns it declares it.

A room exports `ToolSpec`s; the MCP door mounts them and gives every one of them the same: schema
validation with field-level hints, the error dialect of the family, deadlines, cancellation, the queue limit, progress
throttling, versions. Standard library alone, so that any room may import it without weight or cycles.

What `run` may do: return a `ToolOutcome`; raise `ToolFailure` (an operational failure with a public code) or any
`WshError` (the door maps it). When its task is cancelled it must stop its work, kill what it started, and let
`CancelledError` through; the door answers only after `run` has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from wsh.wire.caller import Caller
from wsh.wire.json.object import JsonObject

Family: TypeAlias = Literal["lean", "terminal", "contract", "exec", "workspace"]
Stream: TypeAlias = Literal["info", "stderr", "stdout", "debug"]

# The public codes of failures; a new one is a change of the contract (schemaVersion rises).
INVALID_REQUEST = "INVALID_REQUEST"
NOT_FOUND = "NOT_FOUND"
NO_INDEX = "NO_INDEX"
CAPABILITY_MISSING = "CAPABILITY_MISSING"
QUEUE_OVERLOADED = "QUEUE_OVERLOADED"
TOOL_TIMEOUT = "TOOL_TIMEOUT"
CANCELLED = "CANCELLED"
INTERNAL = "INTERNAL"
UNAUTHORIZED = "UNAUTHORIZED"
FORBIDDEN = "FORBIDDEN"
DOWNLOAD_VERIFY_FAILED = "DOWNLOAD_VERIFY_FAILED"
ARCHIVE_UNSAFE = "ARCHIVE_UNSAFE"
ARCHIVE_TOO_LARGE = "ARCHIVE_TOO_LARGE"
SESSION_EXITED = "SESSION_EXITED"
SESSION_TAKEN = "SESSION_TAKEN"
DISK_FULL = "DISK_FULL"
LINE_IN_USE = "LINE_IN_USE"

PUBLIC_CODES: tuple[str, ...] = (
    INVALID_REQUEST,
    NOT_FOUND,
    NO_INDEX,
    CAPABILITY_MISSING,
    QUEUE_OVERLOADED,
    TOOL_TIMEOUT,
    CANCELLED,
    INTERNAL,
    UNAUTHORIZED,
    FORBIDDEN,
    DOWNLOAD_VERIFY_FAILED,
    ARCHIVE_UNSAFE,
    ARCHIVE_TOO_LARGE,
    SESSION_EXITED,
    SESSION_TAKEN,
    DISK_FULL,
    LINE_IN_USE,
)


class ToolFailure(Exception):
    """The operation ran, or was refused, and failed in a way the model should reason about: an `isError` result.

    `details` are further keys of the payload, such as `stderr`, `stdout` or `timeoutMs`.
    """

    def __init__(self, code: str, message: str, *, hint: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details

    def to_payload(self) -> JsonObject:
        payload: JsonObject = {"message": self.message, "code": self.code}
        if self.hint:
            payload["hint"] = self.hint
        return payload | {key: value for key, value in self.details.items() if value is not None}


@dataclass(frozen=True)
class FieldProblem:
    """One thing that is wrong with the arguments. `path` is dotted (`spans.0.text`), empty for the whole object."""

    path: str
    message: str
    hint: str | None = None

    def to_wire(self) -> dict[str, str]:
        wire = {"path": self.path, "message": self.message}
        return wire | {"hint": self.hint} if self.hint else wire


@dataclass(frozen=True)
class ToolOutcome:
    """What a call gives back. `structured` is a JSON object, or an array (the door wraps it for structuredContent).

    None has no structuredContent. `text` is what stands in `content[0].text`; left out, it is `structured` as JSON.
    """

    structured: Mapping[str, Any] | Sequence[Any] | None
    text: str | None = None
    is_error: bool = False


class Progress(Protocol):
    """Tells the caller how it goes, where the door can."""

    def __call__(self, message: str, *, stream: Stream = "info", phase: str = "progress") -> None: ...


class CallContext(Protocol):
    """What a call knows about its caller, and the two things it may ask of the door."""

    @property
    def caller(self) -> Caller:
        """The caller of this call. `id` is that of the MCP session, the stdio connection or the token, `cwd` that of `wsh mcp` or the server."""

    @property
    def toolsets(self) -> tuple[Family, ...]:
        """What this client is offered: a hint names no other tool."""

    @property
    def timeout_ms(self) -> int:
        """The deadline's length as it was settled for this call."""

    @property
    def deadline(self) -> float:
        """When the call must be over, on the event loop's clock."""

    def progress(self, message: str, *, stream: Stream = "info", phase: str = "progress") -> None:
        """Tell the caller how it goes. Costs nothing when nobody asked; throttled, the latest wins."""


Run: TypeAlias = Callable[[JsonObject, CallContext], Awaitable[ToolOutcome]]
Refuse: TypeAlias = Callable[[JsonObject, Sequence[FieldProblem]], ToolOutcome]


@dataclass(frozen=True)
class Annotations:
    """Hints for hosts that decide what needs a confirmation."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False


@dataclass(frozen=True)
class ToolSpec:
    """One registration. `input_schema` and `output_schema` are JSON Schema (2020-12) objects.

    Every input schema says `"additionalProperties": false` at its root. `timeout_argument` names the argument (in
    milliseconds) that overrides `default_timeout_ms`, `timeout_spelling` another spelling of it that is taken as well; `self_timed` says that `run` ends at `ctx.deadline` by itself
    with a better failure than the door's. `reads` marks calls that never wait and are answered even when the queue is
    full. `refuse` makes the answer to bad arguments, where a family has its own payload; it sees every call whose
    arguments do not fit the schema. With `checks_itself` the door passes arguments on unchecked, and the schema is what
    the tool says of itself. `slack_ms` is how long past its deadline a self-timed tool may take to end by itself.
    `offered` says whether a connection with these governing variables is shown the tool; a call still gets its answer.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, object] | None
    family: Family
    run: Run
    schema_version: int = 1
    default_timeout_ms: int = 30_000
    timeout_argument: str | None = None
    timeout_spelling: str | None = None
    self_timed: bool = False
    slack_ms: int = 5000
    checks_itself: bool = False
    reads: bool = False
    annotations: Annotations = field(default_factory=Annotations)
    refuse: Refuse | None = None
    offered: Callable[[Mapping[str, str]], bool] | None = None
