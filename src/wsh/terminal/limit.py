"""What one terminal may keep."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TerminalLimits:
    """Ceilings of one terminal. Lines are the promise; bytes only stop input made to bloat them."""

    scrollback_lines: int = 10_000
    scrollback_bytes: int = 256 * MIB
    continuation_bytes: int = MIB
    """Longest unfinished escape sequence that a snapshot can carry."""
    clipboard_bytes: int = MIB
    reply_bytes: int = MIB
    """Answers that may wait to be taken; more are dropped."""
    events: int = 1000
    """Events that may wait to be taken; the oldest go first."""
