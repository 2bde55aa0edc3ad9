"""What the engine is asked. Values only; `cwd` is canonical already (see `place.canonical_cwd`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Mode(StrEnum):
    HEADLESS = "headless"
    INTERACTIVE = "interactive"


class Action(StrEnum):
    EXECUTE = "execute"
    """Run the command that the request carries."""
    SEND = "send"
    """Type the command into a terminal that is open."""
    OPEN = "open"
    """Open a terminal without a command."""
    READ_OUTPUT = "read_output"
    TERMINATE = "terminate"
    LIST = "list"


@dataclass(frozen=True)
class PolicyRequest:
    """Either `argv` (taken as it is) or `command` (a string to be parsed), never both."""

    actor: str = "agent"
    action: Action = Action.EXECUTE
    argv: tuple[str, ...] | None = None
    command: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the caller asks for, not those the server has."""
    mode: Mode = Mode.HEADLESS
    workspace: str | None = None
    caller_surface: str | None = None
    home: str | None = None
    """The home folder of the user who runs the command; wiping it is irrecoverable."""
    now: float | None = None
    """Unix time for rules that expire; without it an allow that has an expiry does not hold."""
