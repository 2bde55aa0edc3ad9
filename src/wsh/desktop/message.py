"""Values that travel between the core and the window. Frozen, and made of plain parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from wsh.wire.json.object import JsonObject

StyledLine: TypeAlias = list[JsonObject]


@dataclass(frozen=True)
class WindowHello:
    """The first thing a window hears."""

    address: str
    visible: bool
    sid: str
    """The terminal that was in front before, if any."""


@dataclass(frozen=True)
class Preferences:
    """What the person chose for the window itself."""

    theme: str = "system"
    notify: bool = True
    """A desktop notification when something is asked while the window is not looked at."""
    come_forward: bool = False
    """Whether the window raises itself then."""
    keep_in_tray: bool = True
    """Whether closing the window only hides it, where there is a tray."""


@dataclass(frozen=True)
class TerminalFrame:
    """What changed in a terminal's picture since the frame before; `fresh` when nothing before counts."""

    sid: str
    count: int
    changed: tuple[tuple[int, StyledLine], ...]
    fresh: bool
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
    captured: str = ""
    """Who gets the keys that a person types here, if not the program."""
    lost: str = ""
    """Why this may be an old picture, such as a server that cannot be reached; empty while it is not."""


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
class InboxRow:
    """An entry of the server's inbox."""

    id: str
    kind: str
    session: str
    text: str
    """The last line of a program that asks, else the command."""
    age: str
    wants: bool
    """Whether it waits for a person."""


@dataclass(frozen=True)
class CardRow:
    """One question to the person: `card` is an approval's card, drawn as it is."""

    id: str
    card: JsonObject


@dataclass(frozen=True)
class HistoryRow:
    id: str
    at: float
    command: str
    argv: tuple[str, ...]
    cwd: str
    outcome: str
    by: str
    reason: str
    risk: str
    asker: str
    trace_id: str
    exit_code: int | None = None
    duration_s: float | None = None
    sid: str | None = None
    rule: str = ""
    """The rule that could be made of it."""


@dataclass(frozen=True)
class RuleRow:
    key: str
    command: str
    effect: str
    modes: str
    cwd: str
    workspace: str
    surface: str
    comment: str
    shipped: bool
    exact: bool = False
    """These words and no others."""

    @property
    def label(self) -> str:
        return f"{self.effect} {'exactly ' if self.exact else ''}{self.command} ({self.modes})"


@dataclass(frozen=True)
class PolicyView:
    rules: tuple[RuleRow, ...] = ()
    warning: str = ""
    path: str = ""
    roots: str = ""
    kinds: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    also: str = ""
    variables: str = ""
    lifetime_s: int = 0
    wait_s: int = 0


@dataclass(frozen=True)
class WindowNotice:
    text: str
    bad: bool = False
    details: JsonObject = field(default_factory=dict)
