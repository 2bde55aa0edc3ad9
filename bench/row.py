"""What a measurement is: a row of the table, with its peer and its target."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


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
    """The value itself must not exceed `limit`."""
    return Row(group, title, value, unit, value, f"≤ {limit:g} {unit}", value <= limit, note=note)


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
