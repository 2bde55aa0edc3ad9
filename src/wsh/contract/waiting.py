"""Requests that wait for a person, and what became of the last ones: for whoever looks, never to answer them.

A yes belongs to the desktop, which shows what it would run; nothing here can give one.
"""

from __future__ import annotations

import shlex
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from wsh.bridge.frame import Request as RequestFrame

KEPT = 20
"""How many that were answered are still shown."""
SHOWN_CHARS = 4096


@dataclass
class Waiting:
    frame: RequestFrame
    since: float
    state: str = "waiting"
    by: str | None = None
    ended: float | None = None

    def to_wire(self) -> dict[str, Any]:
        frame = self.frame
        return {
            "trace_id": frame.trace_id,
            "request_id": frame.request_id,
            "kind": frame.kind,
            # Quoted, so that the words of a command can be told apart.
            "command": (shlex.join(frame.argv) if frame.argv else frame.command)[:SHOWN_CHARS],
            "cwd": frame.cwd,
            "asker": frame.asker.caller + (f" over {frame.asker.client}" if frame.asker.client else ""),
            "risk": frame.risk,
            "reasons": list(frame.reasons),
            "since": self.since,
            "deadline": self.since + frame.deadline_ms / 1000,
            "state": self.state,
            "by": self.by,
            "ended": self.ended,
        }


class WaitingRequests:
    def __init__(self, kept: int = KEPT) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._ended: deque[Waiting] = deque(maxlen=kept)

    def enter(self, frame: RequestFrame) -> None:
        self._waiting[frame.id] = Waiting(frame, time.time())

    def leave(self, frame: RequestFrame, state: str, by: str | None = None) -> None:
        """It was answered, withdrawn or lost. Idempotent."""
        entry = self._waiting.pop(frame.id, None)
        if entry is not None:
            entry.state, entry.by, entry.ended = state, by, time.time()
            self._ended.append(entry)

    def list_requests(self) -> list[dict[str, Any]]:
        """Those that wait, oldest first, then those that ended, newest first."""
        return [entry.to_wire() for entry in (*self._waiting.values(), *reversed(self._ended))]
