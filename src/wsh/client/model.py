"""What the server's answers become in Python: frozen values, made from JSON without a model library. Made by scripts/generate_reference.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias, TypeVar

from wsh.wire.json.object import JsonObject

Answer = TypeVar("Answer")
Line: TypeAlias = str | list[JsonObject]
"""A text, or spans with their styles."""


def from_wire(model: type[Answer], wire: Mapping[str, object]) -> Answer:
    """A `model` of the fields it knows; a newer server may send more."""
    known = {f.name for f in fields(model)}  # type: ignore[arg-type]  # every model here is a dataclass
    return model(**{key: value for key, value in wire.items() if key in known})


@dataclass(frozen=True)
class SessionReply:
    name: str
    server: str = ""
    pid: int | None = None
    command: str = ""
    rows: int = 0
    cols: int = 0
    clients: int = 0
    tags: list[str] = field(default_factory=list)
    last_activity_ms: int = 0
    running: bool = False
    state: str = ""
    exit_code: int | None = None
    title: str = ""
    cwd: str = ""
    journal: str = ""
    notice: str | None = None
    sandbox: JsonObject | None = None
    host: str | None = None
    unreachable_since: float | None = None


@dataclass(frozen=True)
class ScreenReply:
    cursor: JsonObject
    epoch: int = 0
    first_line_index: int = 0
    total_lines: int = 0
    lines: list[Line] = field(default_factory=list)
    cols: int = 0
    rows: int = 0
    alternate_active: bool = False
    mode: str = ""

    @property
    def text(self) -> str:
        """The lines as one text; styled lines lose their styles."""
        return "\n".join(_plain(line) for line in self.lines).rstrip(chr(10))


@dataclass(frozen=True)
class ScrollbackReply:
    epoch: int = 0
    lines: list[Line] = field(default_factory=list)
    total: int = 0
    total_lines: int = 0
    offset: int = 0
    first_line: int = 0
    wrapped: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines as one text; styled lines lose their styles."""
        return "\n".join(_plain(line) for line in self.lines)


@dataclass(frozen=True)
class WaitReply:
    screen: ScreenReply
    scrollback_lines: int = 0
    generation: int = 0
    last_activity_ms: int = 0
    ended_by: str = ""
    matched: str | None = None
    command_id: int | None = None
    session: str | None = None


@dataclass(frozen=True)
class RunReply:
    screen: ScreenReply
    generation: int = 0
    finished_by: str = ""
    exit_code: int | None = None
    output: str | None = None
    duration_ms: float | None = None
    pipestatus: list[int] | None = None
    command_id: int | None = None
    commands: list[int] | None = None
    background: list[JsonObject] | None = None
    truncated: JsonObject | None = None
    note: str | None = None
    cleared_line: JsonObject | None = None
    sandbox_denied: JsonObject | None = None
    unfinished: bool | None = None
    outside: JsonObject | None = None


def _plain(line: Line) -> str:
    return line if isinstance(line, str) else "".join(str(span.get("text", "")) for span in line)
