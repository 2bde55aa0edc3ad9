"""How long to wait before the next attempt to reach a host."""

from __future__ import annotations

import random


class GrowingPause:
    """Doubles from `first_s` to `most_s`, each spread by a third, so that many do not come at once."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def take(self) -> float:
        now, self._next_s = self._next_s, min(self._next_s * 2, self._most_s)
        return now * random.uniform(2 / 3, 4 / 3)

    def reset(self) -> None:
        self._next_s = self._first_s
