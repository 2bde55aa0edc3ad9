"""The C library behind typed functions: everything of cffi that the rest of this room may touch.

`pyghostty` carries libghostty-vt; it is loaded in cffi's ABI mode, so every call here crosses a slow border (some
0.3 µs): callers fetch a screen in one piece and never a cell at a time. All functions expect one thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from wsh.terminal.engine.abi import ffi as _ffi
from wsh.wire.error import WshError


def _find_library() -> str:
    """The shared library inside the package `pyghostty`, which is not imported: parsing its declarations takes long."""
    given = os.environ.get("PYGHOSTTY_LIB")
    if given:
        return given
    spec = find_spec("pyghostty")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for suffix in (".so", ".dylib", ".dll"):
            path = Path(folder) / "_lib" / f"libghostty-vt{suffix}"
            if path.exists():
                return str(path)
    raise OSError("libghostty-vt is not installed; reinstall the package pyghostty")


Native: TypeAlias = Any
"""A handle, pointer or value of the engine, which has no types."""

ffi: Final[Native] = _ffi
_lib: Final[Native] = _ffi.dlopen(_find_library())
lib: Final[Native] = _lib
NULL: Final[Native] = _ffi.NULL


def _union_fn(name: str, signature: str) -> Native:
    """A function that takes a union by value, seen as one that takes the struct of the same layout."""
    return _ffi.cast(signature, _ffi.addressof(_lib, name))


class EngineError(WshError):
    """The terminal library refused something it should have done; the fault is ours or the library's."""

    code = "internal_error"

    def __init__(self, call: str, result: int) -> None:
        super().__init__(f"The terminal engine failed in {call} ({result}).", call=call, result=result)


def check(result: int, call: str) -> None:
    if result:
        raise EngineError(call, result)


# cffi cannot pass unions by value; our layout-identical twin struct can be.
grid_ref_at: Final[Native] = _union_fn(
    "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)"
)
track_at: Final[Native] = _union_fn(
    "ghostty_terminal_grid_ref_track", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyTrackedGridRef*)"
)
move_tracked: Final[Native] = _union_fn(
    "ghostty_tracked_grid_ref_set", "GhosttyResult(*)(GhosttyTrackedGridRef, GhosttyTerminal, GhosttyPointS)"
)

ACTIVE: Final[int] = _lib.GHOSTTY_POINT_TAG_ACTIVE
SCREEN: Final[int] = _lib.GHOSTTY_POINT_TAG_SCREEN
PLAIN: Final[int] = _lib.GHOSTTY_FORMATTER_FORMAT_PLAIN
VT: Final[int] = _lib.GHOSTTY_FORMATTER_FORMAT_VT
HTML: Final[int] = _lib.GHOSTTY_FORMATTER_FORMAT_HTML


def new_sized(ctype: str) -> Native:
    """A struct of the library's convention: every `size` field, also of nested structs, set."""
    pointer = ffi.new(ctype + "*")
    _set_sizes(pointer)
    return pointer


def _set_sizes(pointer: Native) -> None:
    kind = ffi.typeof(pointer).item
    for name, field in kind.fields:
        if name == "size":
            pointer.size = ffi.sizeof(kind)
        elif field.type.kind == "struct":
            _set_sizes(ffi.addressof(pointer[0], name))


# Scratch space, shared because all calls come from one thread and none calls back into Python while it uses it.
_point: Final[Native] = ffi.new("GhosttyPointS*")
_ref: Final[Native] = new_sized("GhosttyGridRef")
_selection: Final[Native] = new_sized("GhosttySelection")
_selection_start: Final[Native] = ffi.addressof(_selection, "start")
_selection_end: Final[Native] = ffi.addressof(_selection, "end")
_options: Final[Native] = new_sized("GhosttyFormatterTerminalOptions")
_options.trim = True
_options.selection = _selection
_extra: Final[Native] = _options.extra
_formatter: Final[Native] = ffi.new("GhosttyFormatter*")
_written: Final[Native] = ffi.new("size_t*")
_size: Final[Native] = ffi.new("size_t*")
_bool: Final[Native] = ffi.new("bool*")
_u64: Final[Native] = ffi.new("uint64_t*")
_int: Final[Native] = ffi.new("int*")
_u16: Final[Native] = ffi.new("uint16_t*")
_string: Final[Native] = ffi.new("GhosttyString*")
_mode: Final[Native] = ffi.new("GhosttyTerminalModeConfig*")
_cell: Final[Native] = ffi.new("GhosttyCell*")
_row: Final[Native] = ffi.new("GhosttyRow*")
_rgb: Final[Native] = ffi.new("GhosttyColorRgb*")
_page: list[Native] = [ffi.new("uint8_t[]", 64 * 1024)]


def point(tag: int, x: int, y: int) -> Native:
    _point.tag = tag
    _point.value.x = x
    _point.value.y = y
    return _point[0]


def get_bool(terminal: Native, key: int) -> bool:
    check(lib.ghostty_terminal_get(terminal, key, _bool), "terminal_get")
    return bool(_bool[0])


def get_u16(terminal: Native, key: int) -> int:
    check(lib.ghostty_terminal_get(terminal, key, _u16), "terminal_get")
    return int(_u16[0])


def get_u8(terminal: Native, key: int) -> int:
    _int[0] = 0
    check(lib.ghostty_terminal_get(terminal, key, _int), "terminal_get")
    return int(_int[0]) & 0xFF


_col: Final[Native] = ffi.new("uint16_t*")
_cursor_keys: Final[Native] = ffi.new(
    "GhosttyTerminalData[]",
    [
        lib.GHOSTTY_TERMINAL_DATA_CURSOR_Y,
        lib.GHOSTTY_TERMINAL_DATA_CURSOR_X,
        lib.GHOSTTY_TERMINAL_DATA_CURSOR_VISIBLE,
    ],
)
_cursor_values: Final[Native] = ffi.new("void*[]", [_u16, _col, _bool])


def read_cursor(terminal: Native) -> tuple[int, int, bool]:
    """Row and column of the cursor, and whether it shows."""
    check(lib.ghostty_terminal_get_multi(terminal, 3, _cursor_keys, _cursor_values, _written), "terminal_get_multi")
    return _u16[0], _col[0], _bool[0]


def get_string(terminal: Native, key: int) -> bytes:
    if lib.ghostty_terminal_get(terminal, key, _string) or not _string.len:
        return b""
    return bytes(ffi.buffer(_string.ptr, _string.len))


def get_mode(terminal: Native, number: int, ansi: bool = False) -> bool:
    _mode.mode = (number & 0x7FFF) | (ansi << 15)
    if lib.ghostty_terminal_get(terminal, lib.GHOSTTY_TERMINAL_DATA_MODE, _mode):
        return False
    return bool(_mode.value)


class ModeSet:
    """Private modes that are read together: one call instead of one for each."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        count = len(numbers)
        self._count = count
        self._configs: Native = ffi.new("GhosttyTerminalModeConfig[]", [(number, False) for number in numbers])
        self._keys: Native = ffi.new("GhosttyTerminalData[]", [lib.GHOSTTY_TERMINAL_DATA_MODE] * count)
        self._values: Native = ffi.new("void*[]", [ffi.addressof(self._configs, at) for at in range(count)])
        self._bytes: Native = ffi.buffer(self._configs)
        self._value_at = ffi.offsetof("GhosttyTerminalModeConfig", "value")
        self._step = ffi.sizeof("GhosttyTerminalModeConfig")

    def read(self, terminal: Native) -> bytes:
        """A byte for each mode, in order: 1 where it is set."""
        check(
            lib.ghostty_terminal_get_multi(terminal, self._count, self._keys, self._values, _written),
            "terminal_get_multi",
        )
        return bytes(self._bytes)[self._value_at :: self._step]


def set_size(terminal: Native, option: int, value: int) -> None:
    _size[0] = value
    check(lib.ghostty_terminal_set(terminal, option, _size), "terminal_set")


def set_bool(terminal: Native, option: int, value: bool) -> None:
    _bool[0] = value
    check(lib.ghostty_terminal_set(terminal, option, _bool), "terminal_set")


def set_pointer(terminal: Native, option: int, value: Native) -> None:
    check(lib.ghostty_terminal_set(terminal, option, value), "terminal_set")


def set_text(terminal: Native, option: int, value: bytes) -> None:
    buffer = ffi.from_buffer(value)
    _string.ptr = ffi.cast("const uint8_t*", buffer)
    _string.len = len(value)
    check(lib.ghostty_terminal_set(terminal, option, _string), "terminal_set")


def format_rows(terminal: Native, tag: int, first: int, last: int, cols: int, emit: int) -> bytes:
    """Rows `first` to `last` as the library prints them. Blank rows at the end leave no trace."""
    return _format(terminal, tag, 0, first, cols - 1, last, emit)


def format_logical(terminal: Native, tag: int, first: int, last: int, cols: int) -> bytes:
    """The same as text, with rows that wrap joined to the line they belong to."""
    _options.unwrap = True
    try:
        return _format(terminal, tag, 0, first, cols - 1, last, PLAIN)
    finally:
        _options.unwrap = False


def format_cells(terminal: Native, tag: int, y: int, first: int, last: int) -> bytes:
    """The cells `first` to `last` of one row as VT bytes."""
    return _format(terminal, tag, first, y, last, y, VT)


def format_with(terminal: Native, extras: tuple[str, ...], screen_extras: tuple[str, ...]) -> tuple[bytes, bytes]:
    """State of the terminal as VT bytes, around the first cell of the screen; and that cell by itself."""
    cell = _format(terminal, ACTIVE, 0, 0, 0, 0, VT)
    for name in extras:
        setattr(_extra, name, True)
    for name in screen_extras:
        setattr(_extra.screen, name, True)
    try:
        return _format(terminal, ACTIVE, 0, 0, 0, 0, VT), cell
    finally:
        for name in extras:
            setattr(_extra, name, False)
        for name in screen_extras:
            setattr(_extra.screen, name, False)


def _format(terminal: Native, tag: int, x0: int, y0: int, x1: int, y1: int, emit: int) -> bytes:
    check(grid_ref_at(terminal, point(tag, x0, y0), _selection_start), "grid_ref")
    check(grid_ref_at(terminal, point(tag, x1, y1), _selection_end), "grid_ref")
    _options.emit = emit
    check(lib.ghostty_formatter_terminal_new(NULL, _formatter, terminal, _options[0]), "formatter_new")
    try:
        buffer = _page[0]
        result = lib.ghostty_formatter_format_buf(_formatter[0], buffer, len(buffer), _written)
        if result == lib.GHOSTTY_OUT_OF_SPACE:
            # one large read must not pin its buffer for ever
            buffer = ffi.new("uint8_t[]", _written[0])
            result = lib.ghostty_formatter_format_buf(_formatter[0], buffer, len(buffer), _written)
        check(result, "format")
        return bytes(ffi.buffer(buffer, _written[0]))
    finally:
        lib.ghostty_formatter_free(_formatter[0])


def row_flags(terminal: Native, tag: int, y: int) -> tuple[bool, bool]:
    """Whether a row may hold hyperlinks, and whether it is continued on the next one."""
    check(grid_ref_at(terminal, point(tag, 0, y), _ref), "grid_ref")
    check(lib.ghostty_grid_ref_row(_ref, _row), "grid_ref_row")
    row = _row[0]
    lib.ghostty_row_get(row, lib.GHOSTTY_ROW_DATA_HYPERLINK, _bool)
    linked = bool(_bool[0])
    lib.ghostty_row_get(row, lib.GHOSTTY_ROW_DATA_WRAP, _bool)
    return linked, bool(_bool[0])


def wraps_after(terminal: Native, tag: int, y: int, cols: int) -> str:
    """Why the next row follows by itself when both are printed: the last cell is `text`, or was too `narrow` for some."""
    has_text, width = _cell_kind(terminal, tag, cols - 1, y)
    if has_text or width == lib.GHOSTTY_CELL_WIDE_SPACER_TAIL:
        return "text"
    if width == lib.GHOSTTY_CELL_WIDE_SPACER_HEAD:
        return "narrow" if _cell_kind(terminal, tag, 0, y + 1)[1] == lib.GHOSTTY_CELL_WIDE_WIDE else ""
    return ""


def _cell_kind(terminal: Native, tag: int, x: int, y: int) -> tuple[bool, int]:
    cell = _cell_at(terminal, tag, x, y)
    lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_HAS_TEXT, _bool)
    lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_WIDE, _int)
    return bool(_bool[0]), int(_int[0])


def _cell_at(terminal: Native, tag: int, x: int, y: int) -> int:
    check(grid_ref_at(terminal, point(tag, x, y), _ref), "grid_ref")
    check(lib.ghostty_grid_ref_cell(_ref, _cell), "grid_ref_cell")
    return int(_cell[0])


def are_full(cells: bytes) -> bool:
    """`is_full` for the raw cells of a row."""
    return _is_full(int.from_bytes(cells[-16:-8], sys.byteorder), int.from_bytes(cells[-8:], sys.byteorder))


def lacks_wide(cells: bytes) -> bool:
    """Whether a row ends in a cell where a wide character did not fit."""
    lib.ghostty_cell_get(int.from_bytes(cells[-8:], sys.byteorder), lib.GHOSTTY_CELL_DATA_WIDE, _int)
    return bool(_int[0] == lib.GHOSTTY_CELL_WIDE_SPACER_HEAD)


def is_full(terminal: Native, tag: int, y: int, cols: int) -> bool:
    """Whether a row has text up to its end, where a character that was too wide for the last column may be missing."""
    return _is_full(_cell_at(terminal, tag, max(0, cols - 2), y), _cell_at(terminal, tag, cols - 1, y))


def _is_full(before: int, last: int) -> bool:
    get, wide = lib.ghostty_cell_get, lib.GHOSTTY_CELL_DATA_WIDE
    get(last, lib.GHOSTTY_CELL_DATA_HAS_TEXT, _bool)
    if _bool[0]:
        return True
    get(last, wide, _int)
    if _int[0] == lib.GHOSTTY_CELL_WIDE_SPACER_HEAD:
        get(before, lib.GHOSTTY_CELL_DATA_HAS_TEXT, _bool)
        if _bool[0]:
            return True
        get(before, wide, _int)
    return bool(_int[0] == lib.GHOSTTY_CELL_WIDE_SPACER_TAIL)


def link_at(terminal: Native, x: int, y: int) -> bytes:
    """The address of the hyperlink in a visible cell, or nothing."""
    check(grid_ref_at(terminal, point(ACTIVE, x, y), _ref), "grid_ref")
    buffer = _page[0]
    if lib.ghostty_grid_ref_hyperlink_uri(_ref, buffer, len(buffer), _written):
        return b""
    return bytes(ffi.buffer(buffer, _written[0]))


def is_blank(terminal: Native, tag: int, x: int, y: int) -> bool:
    """Whether a cell was never written, or was erased without a colour."""
    check(grid_ref_at(terminal, point(tag, x, y), _ref), "grid_ref")
    check(lib.ghostty_grid_ref_cell(_ref, _cell), "grid_ref_cell")
    return bool(_cell[0] == 0)


def row_cells(terminal: Native, tag: int, y: int, cols: int) -> list[int]:
    """The raw cells of one row, one call a cell: only for rows that the formatter took for blank."""
    check(grid_ref_at(terminal, point(tag, 0, y), _ref), "grid_ref")
    read, reference, out = lib.ghostty_grid_ref_cell, _ref, _cell
    cells = []
    for x in range(cols):
        reference.x = x
        read(reference, out)
        cells.append(out[0])
    return cells


def cell_background(cell: int) -> str:
    """SGR parameters of a cell that has a background and no text, else nothing."""
    lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_CONTENT_TAG, _int)
    if _int[0] == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
        lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_COLOR_PALETTE, _u64)
        return f"48;5;{_u64[0] & 0xFF}"
    if _int[0] == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
        lib.ghostty_cell_get(cell, lib.GHOSTTY_CELL_DATA_COLOR_RGB, _rgb)
        return f"48;2;{_rgb.r};{_rgb.g};{_rgb.b}"
    return ""


def take_allocated(call: Callable[[Native, Native], int], name: str) -> memoryview:
    """What a function of the `…_alloc` kind made: the library's own memory, freed with the last that refers to it."""
    out = ffi.new("uint8_t**")
    check(call(out, _written), name)
    length = _written[0]
    held = ffi.gc(out[0], lambda memory: lib.ghostty_free(NULL, memory, length), length)
    return memoryview(ffi.buffer(held, length))
