"""How much of something each caller holds: a greedy one is refused before it takes what others need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from wsh.wire.error import LimitReached


class LimitTally:
    def __init__(self, what: str, most: int, setting: str) -> None:
        self._what = what
        self._most = most
        self._setting = setting
        self._held: Counter[str] = Counter()

    @contextmanager
    def hold(self, account: str) -> Iterator[None]:
        """One more for this account until the block ends. Raises LimitReached."""
        if self._held[account] >= self._most:
            raise LimitReached(f"{self._what} of one caller", self._most, self._setting)
        self._held[account] += 1
        try:
            yield
        finally:
            self._held[account] -= 1
            if not self._held[account]:
                del self._held[account]
