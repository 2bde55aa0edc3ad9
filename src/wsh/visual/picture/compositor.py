"""The whole picture of a session: its program's screen, the panels around it and the overlays above, row by row.

A row is bytes that draw it from its first column, to be preceded by moving there and erasing the line. A row that did not change is
the same object as before, so comparing rows of two pictures means comparing pointers first. Made once per change and shared by all
who look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from wsh.visual.picture.cell import BLANK, CellRow, clip, encode, lay_spans, put
from wsh.visual.picture.draw import draw_overlay, draw_panel
from wsh.visual.z_order import from_lowest
from wsh.wire.model.element import Overlay, Panel

if TYPE_CHECKING:
    from wsh.terminal import Terminal
    from wsh.visual.stage import Stage


class Viewport(NamedTuple):
    """The part of a picture that a viewer shows."""

    top: int
    left: int
    rows: int
    cols: int


@dataclass
class _Drawn:
    """An element as it was drawn last: frozen values, so the same object is the same drawing."""

    element: Overlay | Panel
    cols: int
    cells: list[CellRow]
    rows: dict[tuple[int, int, int], bytes] = field(default_factory=dict)

    def slice(self, row: int, first: int, width: int) -> bytes:
        key = (row, first, width)
        if key not in self.rows:
            self.rows[key] = encode(clip(self.cells[row], first, width))
        return self.rows[key]


class Picture:
    """Composes for one session. `rows(window)` gives what a viewer with that window shows."""

    def __init__(self, terminal: Terminal, stage: Stage) -> None:
        self._terminal = terminal
        self._stage = stage
        self._drawn: dict[str, _Drawn] = {}
        self._composed: dict[tuple[int, int, int], bytes] = {}

    def rows(self, window: Viewport) -> list[bytes]:
        """Each row of the window as bytes; overlays are drawn into the rows they cover."""
        self._forget_removed()
        stage, layout = self._stage, self._stage.layout
        whole = window.left == 0 and window.cols >= stage.cols
        if whole and not stage.overlays and not stage.panels:
            # What a key's echo meets nearly always: nothing lies above or beside the program's screen.
            shown = [] if stage.has_canvas else self._terminal.vt_rows(window.top, window.top + window.rows - 1)
            return shown if len(shown) == window.rows else shown + [b""] * (window.rows - len(shown))
        rows: list[bytes] = [b""] * window.rows
        above = self._overlays_by_row()
        program = [] if stage.has_canvas else self._terminal.vt_rows()
        first, count = layout.first_row, min(layout.pty_rows, len(program))
        for at in range(window.rows):
            row = window.top + at
            index = row - first
            inside = 0 <= index < count
            if row in above or not whole:
                cells = self._terminal.styled_rows(index, index)[0] if inside else []
                rows[at] = self._compose(row, lay_spans(cells), above.get(row, ()), window)
            elif inside:
                rows[at] = program[index]
        for slot in (*layout.top, *layout.bottom):
            drawn = self._draw(slot.panel, stage.cols)
            for line in range(slot.height):
                at = slot.row + line - window.top
                if 0 <= at < window.rows:
                    if slot.row + line in above:
                        rows[at] = self._compose(slot.row + line, drawn.cells[line], above[slot.row + line], window)
                    else:
                        rows[at] = drawn.slice(line, window.left, min(window.cols, stage.cols - window.left))
        return rows

    def _overlays_by_row(self) -> dict[int, list[tuple[int, CellRow]]]:
        """(column, cells) of what lies above each row, the highest last."""
        stage = self._stage
        found: dict[int, list[tuple[int, CellRow]]] = {}
        for overlay in from_lowest(stage.overlays.list()):
            if overlay.screen_mode == stage.mode and overlay.x < stage.cols:
                for line, cells in enumerate(self._draw(overlay, overlay.width).cells):
                    if overlay.y + line < stage.rows:
                        found.setdefault(overlay.y + line, []).append((overlay.x, cells))
        return found

    def _compose(self, row: int, below: CellRow, above: Sequence[tuple[int, CellRow]], window: Viewport) -> bytes:
        """One row cell by cell: a wide character that is half covered must not be left to each emulator's taste."""
        cells = [*below[: self._stage.cols], *[BLANK] * (self._stage.cols - len(below))]
        for col, drawn in above:
            put(cells, col, drawn)
        made = encode(_trim(clip(cells, window.left, window.cols)))
        key = (row, window.left, window.cols)
        if self._composed.get(key) == made:
            return self._composed[key]  # the same object, so that comparing is quick
        self._composed[key] = made
        return made

    def _draw(self, element: Overlay | Panel, cols: int) -> _Drawn:
        drawn = self._drawn.get(element.id)
        if drawn is None or drawn.element is not element or drawn.cols != cols:
            cells = draw_overlay(element) if isinstance(element, Overlay) else draw_panel(element, cols)
            drawn = self._drawn[element.id] = _Drawn(element, cols, cells)
        return drawn

    def _forget_removed(self) -> None:
        if len(self._drawn) > len(self._stage.overlays) + len(self._stage.panels):
            self._drawn = {k: d for k, d in self._drawn.items() if self._stage.find_element(k) is not None}


def _trim(cells: CellRow) -> CellRow:
    end = len(cells)
    while end and cells[end - 1] == BLANK:
        end -= 1
    return cells[:end]
