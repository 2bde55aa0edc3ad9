"""A request that may need a person: one shape, in the server, on the bridge and in the window."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
RequestKind: TypeAlias = Literal["run", "open", "send", "hook", "hidden"]
"""`hook`: another program asks whether it may run a command itself. Never across a bridge. `hidden`: type at a prompt that hides what
is typed, in the session `title` of the server that asks; the text is never part of the request."""
RiskName: TypeAlias = Literal["none", "destructive", "irrecoverable"]
EffectName: TypeAlias = Literal["allow", "ask", "refuse"]
Outcome: TypeAlias = Literal["approved", "declined", "withdrawn", "expired", "refused"]
Scope: TypeAlias = Literal["once", "session", "always", "rule"]
AnswerScope: TypeAlias = Literal["once", "session", "always"]
WithdrawReason: TypeAlias = Literal["timeout", "cancelled", "caller_gone"]
Place: TypeAlias = Literal["window", "server", "host"]
"""Where a command runs; fixed before its card is made. `host`: in the program that asks."""
Where: TypeAlias = Literal["window", "page", "shell", "token", "policy"]
"""Where an answer was given; `policy` if a rule gave it."""


class ApprovalValue(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class Asker(ApprovalValue):
    """Who wants it, for the person and the audit. `client` is what the program calls itself, and may be a lie."""

    caller: str
    client: str | None = None
    surface: str | None = None
    workspace_id: str | None = None


class Badge(ApprovalValue):
    """One thing to know about a command before it runs: a word and a sentence. `hold` ones want to be confirmed on purpose."""

    name: str
    title: str
    sentence: str
    hold: bool = False


class ApprovalRequest(ApprovalValue):
    """Something that may need a person: run a command, open a terminal, type into one."""

    id: Id
    trace_id: Id
    request_id: Id
    kind: RequestKind
    session_id: Id
    terminal_id: Id
    command: str = ""
    argv: list[str] = Field(default_factory=list)
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    title: str | None = None
    effect: EffectName
    risk: RiskName = "none"
    reasons: list[str] = Field(default_factory=list)
    rule: str | None = None
    asker: Asker
    deadline_ms: int = Field(ge=1)
    """Its life: how long a person has to answer."""
    wait_ms: int | None = Field(default=None, ge=1)
    """For `send`: how long the caller waits for the line's end. Only to desktops with the capability `line`."""
    note: str | None = Field(default=None, max_length=4096)
    """What the agent says about it. A claim, and shown as one. Only to desktops with the capability `badges`."""
    badges: list[Badge] | None = Field(default=None, max_length=32)
    """What the asking side's policy names. Only to desktops with the capability `badges`."""
    leaves: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """The sandbox that this one command asks to leave. Only to desktops with the capability `sandbox`."""
