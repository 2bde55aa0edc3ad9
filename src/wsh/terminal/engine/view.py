"""The visible screen as the library's render state has it: which rows changed since the last look, and the look of the cursor.

The library tells only once that a row has changed. So a terminal has one view at most, and all looks go through it. Views of the terminals
that were looked at last are kept; another look at one of those costs what has changed, and at any other one the whole screen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wsh.terminal.engine.native import NULL, Native, check, ffi, lib

_KEPT: Final[int] = 16
"""Views at most. One takes some 100 KB."""

_row: Final[Native] = ffi.new("GhosttyRow*")
_cells: Final[Native] = ffi.new("GhosttyCellsView*")
_keys: Final[Native] = ffi.new(
    "GhosttyRenderStateRowData[]",
    [lib.GHOSTTY_RENDER_STATE_ROW_DATA_RAW, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW],
)
_values: Final[Native] = ffi.new("void*[]", [_row, _cells])
_written: Final[Native] = ffi.new("size_t*")
_y: Final[Native] = ffi.new("uint16_t*")
_flag: Final[Native] = ffi.new("bool*")
_int: Final[Native] = ffi.new("int*")


class ChangedRow(NamedTuple):
    y: int
    linked: bool
    """Whether it may hold hyperlinks."""
    cells: bytes
    """Raw cells, 8 bytes each."""


class ScreenView:
    """The view of one terminal. `update` before anything else is asked."""

    __slots__ = ("_rows", "_state")

    def __init__(self) -> None:
        self._state: Native = ffi.new("GhosttyRenderState*")
        self._rows: Native = ffi.new("GhosttyRenderStateRowIterator*")
        check(lib.ghostty_render_state_new(NULL, self._state), "render_state_new")
        check(lib.ghostty_render_state_row_iterator_new(NULL, self._rows), "row_iterator_new")

    def close(self) -> None:
        lib.ghostty_render_state_row_iterator_free(self._rows[0])
        lib.ghostty_render_state_free(self._state[0])

    def update(self, terminal: Native) -> None:
        check(lib.ghostty_render_state_update(self._state[0], terminal), "render_state_update")

    def take_changed(self) -> list[ChangedRow]:
        """Rows that changed since the last call, or all of a view that is new. That a row has come to flow into the next is no change."""
        state, rows = self._state[0], self._rows
        check(lib.ghostty_render_state_get(state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, rows), "render_state_get")
        advance, read, flag = (
            lib.ghostty_render_state_row_iterator_next_dirty,
            lib.ghostty_render_state_row_get_multi,
            lib.ghostty_row_get,
        )
        link, iterator, copy = lib.GHOSTTY_ROW_DATA_HYPERLINK, rows[0], ffi.buffer
        found = []
        while advance(iterator, _y):
            read(iterator, 2, _keys, _values, _written)
            flag(_row[0], link, _flag)
            found.append(ChangedRow(_y[0], _flag[0], copy(_cells.ptr, _cells.len * 8)[:]))
        check(lib.ghostty_render_state_clean(state), "render_state_clean")
        return found

    @property
    def cursor_shape(self) -> int:
        """The look of the cursor, by the library's numbers: bar, block, underline, hollow block."""
        check(
            lib.ghostty_render_state_get(self._state[0], lib.GHOSTTY_RENDER_STATE_DATA_CURSOR_VISUAL_STYLE, _int),
            "render_state_get",
        )
        return int(_int[0])


_views: Final[dict[Native, ScreenView]] = {}
"""By terminal; the one that was looked at last comes last."""


def find_view(terminal: Native) -> ScreenView:
    """The terminal's view, up to date. All rows of a new one count as changed."""
    view = _views.pop(terminal, None)
    if view is None:
        if len(_views) >= _KEPT:
            forget_view(next(iter(_views)))
        view = ScreenView()
    _views[terminal] = view
    view.update(terminal)
    return view


def forget_view(terminal: Native) -> None:
    """The terminal is about to be freed, or its view to be made anew."""
    view = _views.pop(terminal, None)
    if view is not None:
        view.close()
