"""The frames of the bridge, one JSON object a line, and the codec between lines and frames.

Strict on both ends: an unknown type, an unknown field or a wrong type is a malformed frame. What a later version may
add is settled by the version both sides agree on, not by ignoring what is not understood.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from wsh.approval import card, request
from wsh.approval.request import AnswerScope, Id, Outcome, Scope, Where, WithdrawReason
from wsh.bridge.fault import FrameTooLarge, Malformed
from wsh.wire.json.object import JsonObject

VERSIONS: tuple[int, ...] = (1,)
"""Protocol versions that this build speaks."""
CAPABILITIES = "run open send read terminate policy withdraw card line badges sandbox hidden resume".split()
"""What both ends of this build know."""

DEFAULT_PORT = 45459
MAX_FRAME_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
"""Output carried by one frame at most."""


class Frame(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class HelloFrame(Frame):
    """Client's first frame."""

    type: Literal["hello"] = "hello"
    versions: list[int] = Field(min_length=1, max_length=32)
    capabilities: list[str] = Field(default_factory=list, max_length=64)
    token: str = Field(max_length=4096)
    trace_id: Id
    runtime_session_id: Id
    name: str = Field(default="wsh", max_length=200)


class Ready(Frame):
    """Listener's answer to a hello it accepts."""

    type: Literal["ready"] = "ready"
    version: int
    capabilities: list[str] = Field(default_factory=list, max_length=64)
    trace_id: Id
    runtime_session_id: Id
    name: str = Field(default="interactive-terminal", max_length=200)
    heartbeat_ms: int = Field(ge=1)
    max_frame_bytes: int = Field(ge=1024)


class PolicyFrame(Frame):
    """The window's policy, sent after ready and whenever it changes."""

    type: Literal["policy"] = "policy"
    digest: str
    text: str


class RequestFrame(request.ApprovalRequest, Frame):
    """Something that may need a person: run a command, open a terminal, type into one."""

    type: Literal["request"] = "request"
    kind: Literal["run", "open", "send", "hidden"]
    """`hidden` only to desktops with the capability `hidden`."""


class Withdraw(Frame):
    """The caller no longer wants it. Answered by the request's one decision."""

    type: Literal["withdraw"] = "withdraw"
    id: Id
    trace_id: Id
    reason: WithdrawReason


class ShownEvidence(Frame):
    """What the person was shown and what the approval was bound to."""

    argv: list[str]
    cwd: str
    executable: str | None = None
    executable_sha256: str | None = None
    env_digest: str
    binding: str


class Decision(Frame):
    """The one answer to a request."""

    type: Literal["decision"] = "decision"
    id: Id
    trace_id: Id
    outcome: Outcome
    scope: Scope | None = None
    by: str | None = None
    code: str | None = None
    reason: str | None = None
    session_id: Id
    terminal_id: Id
    edited: bool = False
    evidence: ShownEvidence | None = None
    rows: int | None = Field(default=None, ge=1)
    cols: int | None = Field(default=None, ge=1)
    """Size of a terminal that was made. Only to servers with the capability `line`."""
    where: Where | None = None
    """Where the answer was given. Only to servers with the capability `badges`."""


class CardFrame(card.Card, Frame):
    """What the person at the desktop is shown of a request; an answer to it must name its `binding`."""

    type: Literal["card"] = "card"


class PageAnswer(Frame):
    """A person's answer, given at the server. Only a desktop whose own setting permits it takes one."""

    type: Literal["answer"] = "answer"
    id: Id
    request: Id
    trace_id: Id
    binding: str = Field(max_length=200)
    yes: bool
    scope: AnswerScope = "once"
    by: str = Field(max_length=200)
    reason: str | None = Field(default=None, max_length=4096)
    argv: list[str] | None = Field(default=None, min_length=1)
    rule: str | None = Field(default=None, max_length=4096)
    held: bool = False
    headless: bool | None = None
    where: Where | None = None
    """Where it was given. Only to desktops with the capability `badges`, and so is `headless`."""


class Answered(Frame):
    """An answer counted. What became of the request is said by its decision."""

    type: Literal["answered"] = "answered"
    reply_to: Id
    trace_id: Id


class OutputFrame(Frame):
    """What a terminal printed: streamed while it runs, and (with `reply_to`) the answer to a read."""

    type: Literal["output"] = "output"
    terminal_id: Id
    trace_id: Id
    offset: int = Field(ge=0)
    data: str
    encoding: Literal["utf-8", "base64"] = "utf-8"
    dropped: int = Field(default=0, ge=0)
    reply_to: Id | None = None
    running: bool = True
    exit_code: int | None = None

    def payload(self) -> bytes:
        return self.data.encode() if self.encoding == "utf-8" else base64.b64decode(self.data, validate=True)


class LineFrame(Frame):
    """What came of a line that was typed: how its wait ended (None: it was over), and the truth where a shell told it.

    Sent once per `send`, and again when the end of a line that went on is seen later. Only to servers with the capability
    `line`.
    """

    type: Literal["line"] = "line"
    request: Id
    terminal_id: Id
    trace_id: Id
    finished_by: Literal["command", "prompt", "quiet", "exit"] | None = None
    exit_code: int | None = None
    output: str | None = None
    omitted_bytes: int = Field(default=0, ge=0)
    duration_ms: float | None = None
    offset: int = Field(ge=0)
    """Bytes that the terminal had printed by then."""


class Exit(Frame):
    """A terminal's program ended; all its output came before this frame. Also the answer to a terminate."""

    type: Literal["exit"] = "exit"
    terminal_id: Id
    trace_id: Id
    exit_code: int | None
    terminated: bool = False
    survivors: list[int] = Field(default_factory=list)
    reply_to: Id | None = None


class Read(Frame):
    """Output of a terminal since `cursor` (a byte offset); without one, from the oldest kept byte."""

    type: Literal["read"] = "read"
    id: Id
    trace_id: Id
    terminal_id: Id
    cursor: int | None = Field(default=None, ge=0)
    max_bytes: int = Field(default=CHUNK_BYTES, ge=1)


class Terminate(Frame):
    type: Literal["terminate"] = "terminate"
    id: Id
    trace_id: Id
    terminal_id: Id


class Heartbeat(Frame):
    type: Literal["heartbeat"] = "heartbeat"
    seq: int = Field(ge=0)


class Error(Frame):
    """Something the sender could not accept. `fatal` ones are followed by the end of the connection."""

    type: Literal["error"] = "error"
    code: str
    message: str
    reply_to: Id | None = None
    fatal: bool = False
    details: JsonObject = Field(default_factory=dict)


AnyFrame: TypeAlias = Annotated[
    HelloFrame
    | Ready
    | PolicyFrame
    | RequestFrame
    | CardFrame
    | PageAnswer
    | Answered
    | Withdraw
    | Decision
    | OutputFrame
    | LineFrame
    | Exit
    | Read
    | Terminate
    | Heartbeat
    | Error,
    Field(discriminator="type"),
]
FRAME_TYPES: tuple[type[Frame], ...] = (
    HelloFrame,
    Ready,
    PolicyFrame,
    RequestFrame,
    CardFrame,
    PageAnswer,
    Answered,
    Withdraw,
    Decision,
    OutputFrame,
    LineFrame,
    Exit,
    Read,
    Terminate,
    Heartbeat,
    Error,
)
_ADAPTER: TypeAdapter[AnyFrame] = TypeAdapter(AnyFrame, config=ConfigDict(defer_build=True))


def encode(frame: Frame, max_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """The line of `frame`, newline included."""
    line = frame.model_dump_json(exclude_none=True).encode() + b"\n"
    if len(line) > max_bytes:
        raise FrameTooLarge(
            f"A {getattr(frame, 'type', 'part')} frame of {len(line)} bytes exceeds the limit of {max_bytes}.",
            frame_bytes=len(line),
            max_frame_bytes=max_bytes,
        )
    return line


def decode(line: bytes) -> AnyFrame:
    """The frame in `line`. Raises Malformed with where it went wrong, and `reply_to` if the line named an id."""
    try:
        frame = _ADAPTER.validate_json(line)
        if isinstance(frame, OutputFrame):
            frame.payload()
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Malformed(f"Not a frame: {first['msg']}", field=where, **_named_id(line)) from None
    except (binascii.Error, UnicodeEncodeError):
        raise Malformed("Not a frame: its data is not in the encoding it names", field="output.data") from None
    return frame


def _named_id(line: bytes) -> dict[str, str]:
    try:
        value = TypeAdapter(JsonObject).validate_json(line)
    except ValidationError:
        return {}
    found = value.get("id")
    return {"reply_to": found} if isinstance(found, str) and 0 < len(found) <= 200 else {}


def carry(data: bytes) -> tuple[str, Literal["utf-8", "base64"]]:
    """`data` for an output frame: as text where it is valid UTF-8, else base64."""
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), "base64"
