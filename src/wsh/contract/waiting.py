"""Requests that wait for a person, what the person is shown of each, and what became of the last ones.

A yes belongs to the desktop, which resolves what it would run and runs it. What is kept here is for whoever looks, and for
`answer`, which hands an answer on.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from wsh.bridge.escape import escape_argument, escape_text
from wsh.bridge.frame import Card, Decision
from wsh.bridge.frame import Request as RequestFrame
from wsh.contract.adapters.base import RuntimeAdapter
from wsh.wire.jsonobject import JsonObject

KEPT = 20
"""How many that were answered are still shown."""
SHOWN_CHARS = 4096


@dataclass
class Waiting:
    """One request; `over` is set when it is settled."""

    frame: RequestFrame
    adapter: RuntimeAdapter
    since: float
    state: str = "waiting"
    card: Card | None = None
    decision: Decision | None = None
    ended: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_answerable(self) -> bool:
        """Whether the desktop shows it and takes an answer from elsewhere."""
        return self.state == "waiting" and self.card is not None and self.adapter.takes_answers

    def to_wire(self) -> JsonObject:
        frame, decision = self.frame, self.decision
        # Quoted, so that the words of a command can be told apart; spelt out, so that nothing in it is hidden.
        command = " ".join(map(escape_argument, frame.argv)) if frame.argv else escape_text(frame.command)
        client = f" over {escape_text(frame.asker.client)}" if frame.asker.client else ""
        return {
            "id": frame.id,
            "trace_id": frame.trace_id,
            "request_id": frame.request_id,
            "kind": frame.kind,
            "command": command[:SHOWN_CHARS],
            "cwd": escape_text(frame.cwd) if frame.cwd is not None else None,
            "asker": escape_text(frame.asker.caller) + client,
            "risk": self.card.risk if self.card is not None else frame.risk,
            "reasons": [escape_text(reason) for reason in (self.card.reasons if self.card else frame.reasons)],
            "since": self.since,
            "deadline": self.since + frame.deadline_ms / 1000,
            "state": self.state,
            "by": decision.by if decision else None,
            "scope": decision.scope if decision else None,
            "reason": decision.reason if decision else None,
            "edited": decision.edited if decision else False,
            "ended": self.ended,
            "digest": self.card.binding if self.card is not None else None,
            "evidence": _describe(self.card) if self.card is not None else None,
        }


def _describe(card: Card) -> JsonObject:
    return card.model_dump(exclude={"type", "id", "trace_id", "binding", "left_ms"})


class WaitingRequests:
    def __init__(self, kept: int = KEPT) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._ended: deque[Waiting] = deque(maxlen=kept)

    def enter(self, frame: RequestFrame, adapter: RuntimeAdapter) -> None:
        self._waiting[frame.id] = Waiting(frame, adapter, time.time())

    def show(self, card: Card) -> None:
        """The desktop's person sees it now, like this."""
        entry = self._waiting.get(card.id)
        if entry is not None:
            entry.card = card

    def leave(self, frame: RequestFrame, state: str, decision: Decision | None = None) -> None:
        """For a request that was answered, withdrawn or lost. Idempotent."""
        entry = self._waiting.pop(frame.id, None)
        if entry is not None:
            entry.state, entry.decision, entry.ended = state, decision, time.time()
            self._ended.append(entry)
            entry.over.set()

    def find(self, id: str) -> Waiting | None:
        return self._waiting.get(id) or next((entry for entry in self._ended if entry.frame.id == id), None)

    def list_entries(self) -> list[Waiting]:
        """Waiting requests, oldest first, then ended ones, newest first."""
        return [*self._waiting.values(), *reversed(self._ended)]
