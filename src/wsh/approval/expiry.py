"""When a card expires: a request can be answered for its `deadline_ms` from its admission on, whether its card is seen or not.

Beside this timer the ledger refuses a yes that comes too late (`Ledger.claim`), so the two may race and nothing runs after the end. The side that
asked waits as long as this and then withdraws its request (`contract.adapters`), and a request whose time ended while no server ran is expired by
the next one (`contract.ask.restore`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from wsh.approval.ledger import Ledger

REASON = "nobody answered in time"


class Expiry:
    """The life of one request. `close_card` is called when it ends unanswered, and not after `cancel`."""

    def __init__(self, ledger: Ledger, key: str, life_s: float, close_card: Callable[[], None]) -> None:
        self.since = time.monotonic()
        self._deadline = self.since + life_s
        self._ledger = ledger
        self._key = key
        self._close_card = close_card
        self._timer = asyncio.get_running_loop().call_later(life_s, self._on_timer)

    @property
    def left_s(self) -> float:
        return self._deadline - time.monotonic()

    def end(self) -> bool:
        """End it now. False if it was settled before."""
        if not self._ledger.expire(self._key):
            return False
        # The loop's clock is coarser than ours, so its timer may be a hair early: what has ended has no time left.
        self._deadline = min(self._deadline, time.monotonic())
        self._close_card()
        return True

    def _on_timer(self) -> None:
        # An answer that came too late has moved it in the ledger already, and told nobody.
        if not self.end() and self._ledger.state(self._key) == "expired":
            self._close_card()

    def cancel(self) -> None:
        self._timer.cancel()
