"""Which part of the picture a viewer shows that is smaller than it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wsh.visual.picture.following import follow_col, follow_row
from wsh.visual.picture.painter import ViewShape
from wsh.visual.viewer.viewer import Viewer

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage


def is_window(shape: ViewShape, stage: Stage) -> bool:
    """Whether such a viewer shows only a part of the picture."""
    return shape.picture_rows < stage.rows or shape.cols < stage.cols


def bound(viewer: Viewer, stage: Stage, top: int, left: int) -> tuple[int, int]:
    """Where a window may begin that is to begin there: it lies within the picture."""
    return (
        max(0, min(top, stage.rows - viewer.shape.picture_rows)),
        max(0, min(left, stage.cols - viewer.cols)),
    )


def find_cursor(viewer: Viewer, session: Session, stage: Stage) -> tuple[int, int] | None:
    """Where the window of a viewer that is smaller than the picture begins so that it shows the cursor; None if it need not."""
    if not viewer.follows_cursor or viewer.rows > stage.rows and viewer.cols >= stage.cols:
        return None  # the usual case, for every viewer in every frame
    shape = viewer.shape
    if not is_window(shape, stage):
        return None
    cursor = session.terminal.cursor
    if not cursor.visible or stage.has_canvas:
        return None
    return (
        follow_row(viewer.top, shape.picture_rows, stage.layout.first_row + cursor.row),
        follow_col(viewer.left, shape.cols, cursor.col),
    )
