"""Which overlay lies above which, and which panel is nearest to its edge: by `z`, then by the order of making.

An element without a `z` of its own goes above all that are there.
"""

from __future__ import annotations

from collections.abc import Iterable

from wsh.wire.model.element import Overlay, Panel

_HIGHEST = 2**31 - 1


def next_z(elements: Iterable[Overlay | Panel]) -> int:
    """The place above all of them."""
    return min(max((element.z for element in elements), default=-1) + 1, _HIGHEST)


def from_lowest(overlays: Iterable[Overlay]) -> list[Overlay]:
    """In the order of drawing: each covers those before it."""
    return sorted(overlays, key=lambda overlay: overlay.z)


def from_highest(panels: Iterable[Panel]) -> list[Panel]:
    """In the order of getting space: the first is nearest to its edge. At equal `z` the older comes first."""
    return sorted(panels, key=lambda panel: -panel.z)
