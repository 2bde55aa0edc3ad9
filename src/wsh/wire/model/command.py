"""Commands of an integrated shell on the wire, and what a session waits for (pydantic)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from wsh.wire.model.base import Format, Model, Shown
from wsh.wire.model.screen import Line, Screen
from wsh.wire.model.session import StateWord

Truth: TypeAlias = Literal["yes", "no", "unknown"]


class RunRequest(Model):
    """Type `input`, and Enter unless it ends in one, and wait for what comes of it."""

    input: Annotated[str, Field(max_length=4_000_000)]
    enter: bool = True
    timeout_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 2000
    max_wait_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 30_000
    max_output_bytes: Annotated[int, Field(ge=0, le=2**30)] | None = None
    format: Format = "styled"
    clear_line: bool = False
    """Clear what stands on the line first; a person's text is put back afterwards where the shell can."""
    answer: bool = True
    """Type also where a command of the shell asks for something; without it that is refused, as a line in use is."""
    sandbox: Literal["off"] | None = None
    """Ask a person to run this one command without the sandbox, in a session of its own; with `reason`."""
    reason: Annotated[str, Field(max_length=2000)] | None = None
    """Why it must leave the sandbox; the person reads it."""


class ProcessShown(Shown):
    pid: int
    argv: list[str]
    name: str


class RunAnswer(Shown):
    """What is not known is left out."""

    screen: Screen
    generation: int
    finished_by: str
    exit_code: int | None = None
    output: str | None = None
    duration_ms: float | None = None
    pipestatus: list[int] | None = None
    command_id: int | None = None
    commands: list[int] | None = None
    background: list[ProcessShown] | None = None
    truncated: dict[str, object] | None = None
    note: str | None = None
    """Said once in a session, where a shell inside of its shell does not tell when commands end."""
    cleared_line: dict[str, object] | None = None
    """With `clear_line`: what stood there, who typed it and when, and whether it was put back."""
    sandbox_denied: dict[str, object] | None = None
    """Of a command that failed inside a sandbox: `profile`, `error` and `line` of what looks like a refusal by it, and how to `ask`."""
    unfinished: bool | None = None
    """With `prompt`: the shell asks for the rest of the command, such as a closing quote."""
    outside: dict[str, object] | None = None
    """With `sandbox`: what became of the request to run it without, as `approval`, and whose it is."""


class CommandAuthor(Shown):
    kind: Literal["agent", "person", "server"]
    id: str


class CommandInfo(Shown):
    id: int
    command: str
    author: CommandAuthor | None
    """Who pressed Enter; null where nobody knows any more."""
    cwd: str | None
    state: str
    started: float | None
    duration_ms: float | None
    exit_code: int | None
    pipestatus: list[int] | None
    first_line: int
    last_line: int | None
    output_bytes: int | None


class CommandOutput(Shown):
    """Lines of a command's output; with a search, those that match and where they are."""

    lines: list[Line]
    offset: int
    total: int
    numbers: list[int] | None = None
    matches: int | None = None
    missing_bytes: int = 0


class LastInput(Shown):
    by: Literal["agent", "person", "server"]
    name: str
    ago_ms: int


class RunWaits(Shown):
    """A run that waits until the line is empty."""

    by: str
    kind: str
    command: str


class StateAnswer(Shown):
    running: bool
    state: StateWord
    """The same in one word: `idle` is a shell at its prompt, `asks` a question, `hidden` one whose answer is not shown, `open` an editor or the like."""
    at_prompt: Truth
    input_wanted: Truth
    hidden_prompt: Truth
    alt_screen: Truth
    integration: str
    command_id: int | None
    foreground: ProcessShown | None
    cwd: str | None
    jobs: list[ProcessShown]
    agent_defaults: dict[str, object] | None = None
    """Variables that were set because an agent opened it."""
    taken_by: str | None
    run_waits: RunWaits | None = None
    last_input: LastInput | None
