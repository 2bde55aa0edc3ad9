"""Wait for a condition: one way for ordinary code, one for coroutines, one for text on a screen.

The deadline only tells a hang from a slow machine, so it is generous, and no test should need a shorter one. What was
seen last is said when it passes.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANG_S = 120.0
"""Nothing that works takes this long, even on a machine that is busy with other things."""

_SHORTEST_S, _LONGEST_S = 0.005, 0.05


class _Looks:
    """Looks at a condition, one after the other: soon at first, and never for more than a quarter of the time."""

    def __init__(self, timeout_s: float) -> None:
        self._began = self._looked = time.monotonic()
        self._timeout_s = timeout_s

    def is_late(self) -> bool:
        return time.monotonic() > self._began + self._timeout_s

    def pause_s(self) -> float:
        """Until the next look, of which the last began with the last pause."""
        now = time.monotonic()
        cost = now - self._looked
        pause = max(_SHORTEST_S, min(max((now - self._began) / 10, 3 * cost), _LONGEST_S))
        self._looked = now + pause
        return pause


def wait_until(
    condition: Callable[[], T], what: str = "", *, seen: Callable[[], object] | None = None, timeout_s: float = HANG_S
) -> T:
    """Return what `condition` gave as soon as it is true. `seen` tells what to show when that does not happen."""
    looks = _Looks(timeout_s)
    while not (found := condition()):
        if looks.is_late():
            raise AssertionError(_complain(condition, found, what, seen, timeout_s))
        time.sleep(looks.pause_s())
    return found


async def until(
    condition: Callable[[], object],
    what: str = "",
    *,
    seen: Callable[[], object] | None = None,
    timeout_s: float = HANG_S,
) -> None:
    """As `wait_until`, while the loop goes on. The condition may be a coroutine function."""
    looks = _Looks(timeout_s)
    while True:
        answer = condition()
        found = await answer if inspect.isawaitable(answer) else answer
        if found:
            return
        if looks.is_late():
            raise AssertionError(_complain(condition, found, what, seen, timeout_s))
        await asyncio.sleep(looks.pause_s())


def wait_while(condition: Callable[[], object], what: str, for_s: float) -> None:
    """Look for a while that something stays as it is, where nothing tells that it would have changed."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert condition(), f"{what} did not last {for_s:g} s"
        time.sleep(_SHORTEST_S)


async def stays(condition: Callable[[], object], what: str, for_s: float) -> None:
    """As `wait_while`, while the loop goes on."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert condition(), f"{what} did not last {for_s:g} s"
        await asyncio.sleep(_SHORTEST_S)


def wait_for_text(
    read: Callable[[], str], condition: Callable[[str], object], what: str = "", *, timeout_s: float = HANG_S
) -> str:
    """Read again and again until the text meets the condition, and return that text."""
    looks = _Looks(timeout_s)
    while not condition(text := read()):
        if looks.is_late():
            raise AssertionError(f"waited {timeout_s:g} s for {what or 'a text'}; there is:\n{text}")
        time.sleep(looks.pause_s())
    return text


def _complain(
    condition: Callable[[], object], found: object, what: str, seen: Callable[[], object] | None, timeout_s: float
) -> str:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return f"waited {timeout_s:g} s for {name}; saw {found if seen is None else seen()}"
