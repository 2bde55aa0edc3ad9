"""Where a window smaller than the picture lies, so that the cursor is in it. Pure.

Rows move as little as they must, and to the very top where that shows the cursor as well: a cleared screen is seen whole. Columns start at the first one while the cursor is reached from there, because lines begin there; beyond,
the window moves by half its width, so that typing a long line does not move it with every key.
"""

from __future__ import annotations


def follow_row(top: int, height: int, row: int) -> int:
    """The first row of a window of `height` rows that now begins at `top` and must show `row`."""
    if row < top:
        return 0 if row < height else row
    return max(top, row - height + 1)


def follow_col(left: int, width: int, col: int) -> int:
    """The first column of a window of `width` columns that now begins at `left` and must show `col`."""
    if col < width:
        return 0
    if left <= col < left + width:
        return left
    return col - width // 2
