"""Events that a terminal found in what it was fed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TerminalBell:
    count: int = 1


@dataclass(frozen=True, slots=True)
class TerminalTitleChanged:
    title: str


@dataclass(frozen=True, slots=True)
class TerminalCwdChanged:
    cwd: str | None
    """A path on this host, or nothing where the program named none that can be trusted."""


@dataclass(frozen=True, slots=True)
class ClipboardWrite:
    """OSC 52 and its kin. An empty `data` asks to clear."""

    location: Literal["clipboard", "selection", "primary"]
    data: bytes


@dataclass(frozen=True, slots=True)
class TerminalNotification:
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class TerminalProgress:
    state: Literal["remove", "set", "error", "indeterminate", "pause"]
    percent: int | None


@dataclass(frozen=True, slots=True)
class AltScreen:
    active: bool


TerminalEvent: TypeAlias = (
    TerminalBell
    | TerminalTitleChanged
    | TerminalCwdChanged
    | ClipboardWrite
    | TerminalNotification
    | TerminalProgress
    | AltScreen
)
