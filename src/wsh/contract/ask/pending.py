"""Requests that wait for a person, what the person is shown of each, and what became of the last ones.

A yes belongs to the place where the command would run: the window, or the queue in this server. What is kept here is for people who look,
and for `answer`, which hands an answer on.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from wsh.approval.card import Card, describe_asker
from wsh.approval.escape import escape_argument, escape_text
from wsh.approval.request import ApprovalRequest
from wsh.bridge.frame import Decision
from wsh.contract.adapters.base import RuntimeAdapter
from wsh.contract.identity import Identity
from wsh.wire.json.object import JsonObject

KEPT = 20
"""How many that were answered are still shown."""
SHOWN_CHARS = 4096


@dataclass
class PendingRequest:
    """One request; `over` is set when it is settled."""

    request: ApprovalRequest
    adapter: RuntimeAdapter
    identity: Identity
    since: float
    began: float = field(default_factory=time.monotonic)
    """The same by a clock that does not jump."""
    state: str = "waiting"
    card: Card | None = None
    decision: Decision | None = None
    ended: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_answerable(self) -> bool:
        """Whether the desktop shows it and takes an answer from elsewhere."""
        return self.state == "waiting" and self.card is not None and self.adapter.knows("answer")

    @property
    def left_s(self) -> float:
        """How long it may still be answered."""
        return self.began + self.request.deadline_ms / 1000 - time.monotonic()

    def to_wire(self) -> JsonObject:
        request, decision = self.request, self.decision
        card, identity = self.card, self.identity
        # Quoted, so that the words of a command can be told apart; spelt out, so that nothing in it is hidden.
        command = " ".join(map(escape_argument, request.argv)) if request.argv else escape_text(request.command)
        wire: JsonObject = {
            "id": request.id,
            "trace_id": request.trace_id,
            "request_id": request.request_id,
            "kind": request.kind,
            "command": command[:SHOWN_CHARS],
            "cwd": escape_text(request.cwd) if request.cwd is not None else None,
            "asker": describe_asker(request),
            "risk": card.risk if card is not None else request.risk,
            "badges": [each.model_dump() for each in (card.badges if card is not None else request.badges or ())],
            "reasons": card.reasons if card is not None else [escape_text(reason) for reason in request.reasons],
            "note": escape_text(request.note) if request.note is not None else None,
            "place": "host"
            if request.kind == "hook"
            else "server"
            if request.kind == "hidden" or self.adapter.adapter_type == "server"
            else "window",
            "session": request.title if request.kind == "hidden" else None,
            "since": self.since,
            # As the wall clock stands now, since that is what it is compared with.
            "deadline": (time.time() + self.left_s) if self.ended is None else self.since + request.deadline_ms / 1000,
            "state": self.state,
            "by": decision.by if decision else None,
            "where": decision.where if decision else None,
            "scope": decision.scope if decision else None,
            "reason": decision.reason if decision else None,
            "edited": decision.edited if decision else False,
            "ended": self.ended,
            "digest": card.binding if card is not None else None,
            "evidence": card.model_dump(exclude={"type", "id", "trace_id", "binding", "deadline"}) if card else None,
            "run": None,
        }
        if self.state == "approved" and request.kind in ("run", "open"):
            wire["run"] = {
                "running": identity.running,
                "exit_code": identity.exit_code,
                "terminated": identity.terminated,
            }
        return wire


class PendingRequests:
    def __init__(self, kept: int = KEPT) -> None:
        self._waiting: dict[str, PendingRequest] = {}
        self._ended: deque[PendingRequest] = deque(maxlen=kept)
        self.changed: Callable[[], None] = lambda: None
        """Called when one comes, is shown, or ends."""

    def enter(self, request: ApprovalRequest, adapter: RuntimeAdapter, identity: Identity, since: float) -> None:
        self._waiting[request.id] = PendingRequest(request, adapter, identity, since)
        self.changed()

    def recall(self, entry: PendingRequest) -> None:
        """One that was settled in the time of an earlier server."""
        entry.over.set()
        self._ended.append(entry)

    def show(self, card: Card) -> None:
        """The desktop's person sees it now, like this."""
        entry = self._waiting.get(card.id)
        if entry is not None:
            entry.card = card
            self.changed()

    def leave(self, request: ApprovalRequest, state: str, decision: Decision | None = None) -> None:
        """For a request that was answered, withdrawn or lost. Idempotent."""
        entry = self._waiting.pop(request.id, None)
        if entry is not None:
            entry.state, entry.decision, entry.ended = state, decision, time.time()
            self._ended.append(entry)
            entry.over.set()
            self.changed()

    def find(self, id: str) -> PendingRequest | None:
        return self._waiting.get(id) or next((entry for entry in self._ended if entry.request.id == id), None)

    def list_entries(self) -> list[PendingRequest]:
        """Waiting requests, oldest first, then ended ones, newest first."""
        return [*self._waiting.values(), *reversed(self._ended)]
