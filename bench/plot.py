"""Curves on logarithmic axes as SVG, and the exponent that fits them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

Point = tuple[float, float]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 420, 260, 64, 40


def fit_exponent(points: Sequence[Point]) -> float:
    """The slope of a straight line through the logarithms: 1 is proportional, 0 is constant."""
    logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else 0.0


def draw(title: str, x_name: str, y_name: str, points: Sequence[Point]) -> str:
    """One curve with its points, powers of ten as lines."""
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(max(y, 1e-9)) - low_y) / (high_y - low_y)
        return _LEFT + across * (_WIDTH - _LEFT - 16), 28 + (1 - up) * (_HEIGHT - _BOTTOM - 28)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="16" font-size="13" fill="#111111">{escape(title)}</text>',
    ]
    for power in range(low_x, high_x + 1):
        x, _ = place(10.0**power, 10.0**low_y)
        parts.append(f'<line x1="{x:.1f}" y1="28" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">{_say(power)}</text>')
    for power in range(low_y, high_y + 1):
        _, y = place(10.0**low_x, 10.0**power)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - 16}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_say(power)}</text>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#0b6e99" stroke-width="2"/>')
    for point in points:
        x, y = place(*point)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#0b6e99"/>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(
        f'<text x="12" y="{_HEIGHT / 2}" transform="rotate(-90 12 {_HEIGHT / 2})" text-anchor="middle">{escape(y_name)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(max(min(values), 1e-9)))
    high = math.ceil(math.log10(max(*values, 1e-9)))
    return low, max(high, low + 1)


def _say(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
