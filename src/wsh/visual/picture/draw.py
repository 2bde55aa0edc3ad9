"""An element as rows of cells: its background, its spans flowing from the top left, its region writes on top.

Pure. The result is clipped to the element; where the element lies is the compositor's business.
"""

from __future__ import annotations

from collections.abc import Sequence

from wsh.visual.picture.cell import Cell, CellRow, background_sgr, lay_text, put, sgr_of
from wsh.wire.model.element import Overlay, Panel, RegionWrite, Span
from wsh.wire.model.screen import IndexedColor, RgbColor


def draw_overlay(overlay: Overlay) -> list[CellRow]:
    return draw(overlay.spans, overlay.region_writes, overlay.width, overlay.height, overlay.background)


def draw_panel(panel: Panel, cols: int) -> list[CellRow]:
    return draw(panel.spans, panel.region_writes, cols, panel.height, panel.background)


def draw(
    spans: Sequence[Span],
    writes: Sequence[RegionWrite],
    width: int,
    height: int,
    background: IndexedColor | RgbColor | None,
) -> list[CellRow]:
    blank = Cell(" ", background_sgr(background))
    rows: list[CellRow] = [[blank] * width for _ in range(height)]
    row = col = 0
    for span in spans:
        style = sgr_of(span, background)
        for index, line in enumerate(span.text.split("\n")):
            if index:
                row, col = row + 1, 0
            if row >= height:
                break
            cells = lay_text(line, style)
            put(rows[row], col, cells)
            col += len(cells)
        if row >= height:
            break
    for write in writes:
        if write.row < height:
            put(rows[write.row], write.col, lay_text(write.text, sgr_of(write, background)))
    return rows
