"""Who may still decide: the one place where a request changes state.

    pending ── claim ──► claimed ── start ──► started
       │                    │
       ├─ decline ► declined├─ refuse ► refused
       ├─ expire ─► expired │
       └─ withdraw ─────────┴────────► withdrawn

Every step is taken under one lock and at most once, from any thread: a window may approve in the same instant in which
the caller withdraws, and exactly one of the two wins. `start` is the last step before a program runs, so nothing runs
that was withdrawn, expired or declined.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["pending", "claimed", "started", "declined", "withdrawn", "expired", "refused"]
REMEMBERED = 10_000
"""Settled requests that are remembered, so that an id cannot be used twice."""


class QueueFull(Exception):
    """As many requests wait for the person as may."""


class DuplicateId(Exception):
    """This id was used before on this bridge."""


@dataclass
class LedgerEntry:
    owner: object
    deadline: float
    state: State = "pending"


class Ledger:
    """States of all requests. Knows neither frames nor sockets; time comes from `clock`."""

    def __init__(self, max_pending: int = 256, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_pending = max_pending
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, LedgerEntry] = OrderedDict()
        self._pending = 0
        self._grants: dict[str, float] = {}

    @property
    def pending(self) -> int:
        return self._pending

    def state(self, key: str) -> State | None:
        with self._lock:
            entry = self._entries.get(key)
            return entry.state if entry else None

    def open(self, key: str, owner: object, life_s: float) -> None:
        with self._lock:
            if key in self._entries:
                raise DuplicateId(key)
            if self._pending >= self.max_pending:
                raise QueueFull(key)
            self._entries[key] = LedgerEntry(owner, self._clock() + life_s)
            self._pending += 1
            self._forget_oldest()

    def claim(self, key: str) -> bool:
        """Say yes. False if it was settled before, or its time is over (it is then expired)."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.state != "pending":
                return False
            if self._clock() >= entry.deadline:
                self._move(entry, "expired")
                return False
            self._move(entry, "claimed")
            return True

    def start(self, key: str) -> bool:
        """The point of no return, right before the program runs."""
        return self._step(key, {"claimed"}, "started")

    def decline(self, key: str) -> bool:
        return self._step(key, {"pending"}, "declined")

    def expire(self, key: str) -> bool:
        return self._step(key, {"pending"}, "expired")

    def refuse(self, key: str) -> bool:
        """For a request that cannot run: no such program, forbidden, or no longer what was shown."""
        return self._step(key, {"pending", "claimed"}, "refused")

    def withdraw(self, key: str) -> bool:
        return self._step(key, {"pending", "claimed"}, "withdrawn")

    def withdraw_all(self, owner: object) -> list[str]:
        """The caller's connection is gone: nothing of it can be approved any more."""
        with self._lock:
            keys = [k for k, e in self._entries.items() if e.owner is owner and e.state in {"pending", "claimed"}]
            for key in keys:
                self._move(self._entries[key], "withdrawn")
            return keys

    def grant(self, binding: str, life_s: float) -> None:
        """Remember a yes for this exact binding."""
        with self._lock:
            now = self._clock()
            self._grants = {known: until for known, until in self._grants.items() if until > now}
            self._grants[binding] = now + life_s

    def is_granted(self, binding: str) -> bool:
        with self._lock:
            return self._grants.get(binding, 0.0) > self._clock()

    def _step(self, key: str, allowed: set[State], to: State) -> bool:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.state not in allowed:
                return False
            self._move(entry, to)
            return True

    def _move(self, entry: LedgerEntry, to: State) -> None:
        if entry.state == "pending":
            self._pending -= 1
        entry.state = to

    def _forget_oldest(self) -> None:
        while len(self._entries) > REMEMBERED + self.max_pending:
            for key, entry in self._entries.items():
                if entry.state not in {"pending", "claimed"}:
                    del self._entries[key]
                    break
            else:
                return
