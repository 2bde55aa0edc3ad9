"""A Landlock ruleset made ahead: the system's part is the same for every session and takes most of the time.

A session gets one that nobody else has, adds its own folders to it, and the next is made a moment later, beside the session's start. One is
used only if nothing changed meanwhile in the folders whose entries it allows by name.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from dataclasses import dataclass

from wsh.sandbox import landlock

log = logging.getLogger(__name__)

_LATER_S = 0.02
"""How long after one was taken the next is made: the start of a session goes first."""


@dataclass(frozen=True)
class _Spare:
    fd: int
    state: landlock.SystemState


class SpareRulesets:
    """At most one for each setting of the network. Called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: dict[bool, _Spare] = {}
        self._orders: queue.SimpleQueue[bool | None] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False

    def take(self, closes_network: bool, abi: int) -> int:
        """The descriptor of a ruleset with the system's rules, which the caller closes. Raises OSError."""
        with self._lock:
            spare = self._ready.pop(closes_network, None)
            if not self._closed and self._start_worker(abi):
                self._orders.put(closes_network)
        if spare is not None:
            if spare.state.is_settled and spare.state == landlock.read_state():
                return spare.fd
            os.close(spare.fd)
        return landlock.begin_ruleset(closes_network, abi)

    def close(self) -> None:
        """Let go of what was made ahead. Idempotent; nothing is made afterwards."""
        with self._lock:
            self._closed = True
            spares, self._ready = list(self._ready.values()), {}
        self._orders.put(None)
        for spare in spares:
            os.close(spare.fd)

    def _start_worker(self, abi: int) -> bool:
        """One thread for all of them: to start one takes as long as to make a ruleset."""
        if self._worker is None:
            worker = threading.Thread(target=self._work, args=(abi,), name="landlock-rulesets", daemon=True)
            try:
                worker.start()
            except RuntimeError:  # no thread left: then each session makes its own
                return False
            self._worker = worker
        return True

    def _work(self, abi: int) -> None:
        while (closes_network := self._orders.get()) is not None:
            time.sleep(_LATER_S)
            if not self._wants(closes_network):
                continue
            try:
                state = landlock.read_state()
                made = _Spare(landlock.begin_ruleset(closes_network, abi), state)
            except OSError as problem:
                log.info("no Landlock ruleset could be made ahead: %s", problem)
                continue
            with self._lock:
                wanted = self._wants(closes_network)
                if wanted:
                    self._ready[closes_network] = made
            if not wanted:
                os.close(made.fd)

    def _wants(self, closes_network: bool) -> bool:
        return not self._closed and closes_network not in self._ready
