"""What the server's answers become in Python: frozen values, made from JSON without a model library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

Model = TypeVar("Model")


def from_wire(model: type[Model], wire: Mapping[str, Any]) -> Model:
    """A `model` of the fields it knows; a newer server may send more."""
    known = {f.name for f in fields(model)}  # type: ignore[arg-type]  # every model here is a dataclass
    return model(**{key: value for key, value in wire.items() if key in known})


@dataclass(frozen=True)
class SessionInfo:
    name: str
    server: str = ""
    pid: int = 0
    command: str = ""
    rows: int = 24
    cols: int = 80
    clients: int = 0
    tags: list[str] = field(default_factory=list)
    last_activity_ms: int = 0
    running: bool = True
    exit_code: int | None = None
    title: str = ""
    cwd: str = ""
    journal: str = "ok"
    """`full` while the disk refuses what it prints, `off` where journals are off."""


@dataclass(frozen=True)
class Screen:
    lines: list[Any]
    cursor: dict[str, Any]
    rows: int
    cols: int
    mode: str
    alternate_active: bool = False
    epoch: int = 0
    first_line_index: int = 0
    total_lines: int = 0

    @property
    def text(self) -> str:
        """The rows as one text; styled rows lose their styles."""
        return "\n".join(_plain(line) for line in self.lines).rstrip("\n")


@dataclass(frozen=True)
class Scrollback:
    lines: list[Any]
    total: int
    total_lines: int = 0
    offset: int = 0
    first_line: int = 0
    epoch: int = 0

    @property
    def text(self) -> str:
        return "\n".join(_plain(line) for line in self.lines)


@dataclass(frozen=True)
class WaitOutcome:
    ended_by: str
    generation: int
    screen: Screen
    last_activity_ms: int = 0
    matched: str | None = None


@dataclass(frozen=True)
class RunOutcome:
    """How a command ended: `finished_by` is "command", "quiet", "exit" or "prompt"."""

    finished_by: str
    generation: int
    screen: Screen
    exit_code: int | None = None
    output: str | None = None
    duration_ms: float | None = None
    command_id: int | None = None
    pipestatus: list[int] | None = None
    background: list[Any] | None = None
    truncated: dict[str, Any] | None = None


def _plain(line: Any) -> str:
    return line if isinstance(line, str) else "".join(str(span.get("text", "")) for span in line)
