"""What a terminal noticed while it was fed, for whoever cares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Bell:
    count: int = 1


@dataclass(frozen=True, slots=True)
class TitleChanged:
    title: str


@dataclass(frozen=True, slots=True)
class CwdChanged:
    cwd: str | None
    """A path on this host, or nothing where the program named none that can be trusted."""


@dataclass(frozen=True, slots=True)
class ClipboardWrite:
    """OSC 52 and its kin. An empty `data` asks to clear."""

    location: Literal["clipboard", "selection", "primary"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Notification:
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Progress:
    state: Literal["remove", "set", "error", "indeterminate", "pause"]
    percent: int | None


@dataclass(frozen=True, slots=True)
class AltScreen:
    active: bool


TerminalEvent: TypeAlias = Bell | TitleChanged | CwdChanged | ClipboardWrite | Notification | Progress | AltScreen
