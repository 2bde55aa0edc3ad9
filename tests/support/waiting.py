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

HANG_S = 60.0
"""Nothing that works takes this long, even on a machine that is busy with other things."""

_PAUSE_S = 0.005


def wait_until(
    condition: Callable[[], T], what: str = "", *, seen: Callable[[], object] | None = None, timeout_s: float = HANG_S
) -> T:
    """Return what `condition` gave as soon as it is true. `seen` tells what to show when that does not happen."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(_complain(condition, found, what, seen, timeout_s))
        time.sleep(_PAUSE_S)
    return found


async def until(
    condition: Callable[[], object],
    what: str = "",
    *,
    seen: Callable[[], object] | None = None,
    timeout_s: float = HANG_S,
) -> None:
    """As `wait_until`, while the loop goes on. The condition may be a coroutine function."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        found = await answer if inspect.isawaitable(answer) else answer
        if found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(_complain(condition, found, what, seen, timeout_s))
        await asyncio.sleep(_PAUSE_S)


def wait_while(condition: Callable[[], object], what: str, for_s: float) -> None:
    """Look for a while that something stays as it is, where nothing tells that it would have changed."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert condition(), f"{what} did not last {for_s:g} s"
        time.sleep(_PAUSE_S)


async def stays(condition: Callable[[], object], what: str, for_s: float) -> None:
    """As `wait_while`, while the loop goes on."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        assert condition(), f"{what} did not last {for_s:g} s"
        await asyncio.sleep(_PAUSE_S)


def wait_for_text(
    read: Callable[[], str], condition: Callable[[str], object], what: str = "", *, timeout_s: float = HANG_S
) -> str:
    """Read again and again until the text meets the condition, and return that text."""
    deadline = time.monotonic() + timeout_s
    while not condition(text := read()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:g} s for {what or 'a text'}; there is:\n{text}")
        time.sleep(_PAUSE_S)
    return text


def _complain(
    condition: Callable[[], object], found: object, what: str, seen: Callable[[], object] | None, timeout_s: float
) -> str:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return f"waited {timeout_s:g} s for {name}; saw {found if seen is None else seen()}"
