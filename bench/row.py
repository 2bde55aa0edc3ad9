"""What a measurement is: a row of the table, with its peer and its target."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LOOP_MS = 8.0
"""What the calibration loop took on the machine on which the targets in milliseconds were set."""
_UNITS = {"ms": 1.0, "s": 1000.0}


@dataclass(frozen=True)
class Row:
    """One measured claim.

    `value` is ours and `peer` the other side's, in `unit`, measured in the same run. `score` is the number the target speaks
    of (a ratio, or the value itself) and `ok` whether it is met.
    """

    group: str
    title: str
    value: float
    unit: str
    score: float
    target: str
    ok: bool
    peer_name: str = ""
    peer: float | None = None
    note: str = ""


def at_least(
    group: str, title: str, value: float, peer: float, unit: str, peer_name: str, factor: float, note: str = ""
) -> Row:
    """Ours must be at least `factor` times the peer's (throughput)."""
    ratio = value / peer if peer else float("inf")
    return Row(group, title, value, unit, ratio, f"≥ {factor:g} ×", ratio >= factor, peer_name, peer, note)


def at_most_ratio(
    group: str, title: str, value: float, peer: float, unit: str, peer_name: str, factor: float, note: str = ""
) -> Row:
    """Ours must be at most `factor` times the peer's (time)."""
    ratio = value / peer if peer else float("inf")
    return Row(group, title, value, unit, ratio, f"≤ {factor:g} ×", ratio <= factor, peer_name, peer, note)


def at_most(group: str, title: str, value: float, limit: float, unit: str, note: str = "") -> Row:
    """The value itself must not exceed `limit`.

    A limit in time is one of the machine on which it was set: it becomes so many calibration loops, measured now.
    """
    if unit not in _UNITS:
        return Row(group, title, value, unit, value, f"≤ {limit:g} {unit}", value <= limit, note=note)
    loop = calibrate() / _UNITS[unit]
    factor = limit * _UNITS[unit] / LOOP_MS
    return at_most_ratio(group, title, value, loop, unit, "a calibration loop", round(factor, 3), note)


def calibrate(rounds: int = 7) -> float:
    """Milliseconds that a loop of fixed work takes: calls, numbers, a dictionary and text, as the server's own work is."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        kept: dict[int, str] = {}
        for number in range(40_000):
            kept[number & 1023] = str(number)
            number = number * 31 % 65_537
        "".join(kept.values()).split("7")
        times.append((time.perf_counter() - started) * 1000)
    return median(times)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def interleave(sides: dict[str, Callable[[], float]], rounds: int = 5) -> dict[str, list[float]]:
    """Run every side `rounds` times, taking turns, so that noise of the machine falls on all of them."""
    results: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            results[name].append(measure())
    return results
