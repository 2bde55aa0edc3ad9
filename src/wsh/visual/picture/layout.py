"""Where panels lie, and how many rows are left to the program. Pure.

The panel with the highest z gets its rows first and lies nearest its edge; at equal z the older one does. The program
keeps at least one row; a panel that does not fit then is not shown, and a lower one that does fit is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wsh.visual.z_order import from_highest
from wsh.wire.model.element import Panel
from wsh.wire.model.screen import Mode


@dataclass(frozen=True)
class Slot:
    """The rows of one panel, counted from the top of the whole picture."""

    panel: Panel
    row: int
    height: int


@dataclass(frozen=True)
class Layout:
    rows: int
    cols: int
    top: tuple[Slot, ...]
    bottom: tuple[Slot, ...]

    @property
    def first_row(self) -> int:
        """The row of the picture where the program's screen begins."""
        return sum(slot.height for slot in self.top)

    @property
    def pty_rows(self) -> int:
        """The rows that are left to the program."""
        return self.rows - sum(slot.height for slot in (*self.top, *self.bottom))

    @property
    def shown(self) -> set[str]:
        return {slot.panel.id for slot in (*self.top, *self.bottom)}


def lay_out(panels: Iterable[Panel], rows: int, cols: int, mode: Mode) -> Layout:
    """Place the panels of `mode` on a picture of `rows` × `cols`."""
    left = rows - 1
    top: list[Slot] = []
    bottom: list[Slot] = []
    next_top, next_bottom = 0, rows
    for panel in from_highest(p for p in panels if p.screen_mode == mode):
        if panel.height > left:
            continue
        left -= panel.height
        if panel.position == "top":
            top.append(Slot(panel, next_top, panel.height))
            next_top += panel.height
        else:
            next_bottom -= panel.height
            bottom.append(Slot(panel, next_bottom, panel.height))
    return Layout(rows, cols, tuple(top), tuple(bottom))
