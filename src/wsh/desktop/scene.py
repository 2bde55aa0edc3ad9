"""Values that travel from the core to the window. Frozen, so that two threads may look at them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

StyledLine: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True)
class Frame:
    """A terminal's picture: rows that did not change are the same objects as in the frame before."""

    sid: str
    rows: list[StyledLine]
    cols: int
    cursor_row: int
    cursor_col: int
    cursor_visible: bool
    cursor_shape: str
    scrolled: int
    """Lines between the bottom row and the newest line."""
    history: int
    """Lines above the screen."""
    mouse: bool
    title: str = ""


@dataclass(frozen=True)
class SessionRow:
    sid: str
    name: str
    command: str
    workspace: str
    mood: str
    """running, waiting, hidden, exited or failed."""
    exit_code: int | None
    pending: int = 0
    remote: bool = False


@dataclass(frozen=True)
class RequestRow:
    """One question to the person, with all the evidence."""

    rid: str
    kind: str
    command: str
    argv: tuple[str, ...]
    """Every argument visibly escaped."""
    raw_argv: tuple[str, ...]
    cwd: str
    executable: str
    sha256: str
    env: tuple[str, ...]
    risk: str
    reasons: tuple[str, ...]
    asker: str
    client: str
    workspace: str
    trace_id: str
    deadline: float
    """Unix time at which it ends unanswered."""
    rule: str
    """What "always" would write, as a pattern that can be narrowed."""


@dataclass(frozen=True)
class HistoryRow:
    id: str
    at: float
    command: str
    cwd: str
    outcome: str
    by: str
    reason: str
    risk: str
    trace_id: str
    exit_code: int | None = None
    duration_s: float | None = None
    sid: str | None = None


@dataclass(frozen=True)
class RuleRow:
    command: str
    effect: str
    modes: str
    scope: str
    comment: str
    shipped: bool


@dataclass(frozen=True)
class PolicyView:
    rules: tuple[RuleRow, ...]
    warning: str
    path: str
    text: str
    roots: str = ""


@dataclass(frozen=True)
class Notice:
    text: str
    bad: bool = False
    details: dict[str, Any] = field(default_factory=dict)
