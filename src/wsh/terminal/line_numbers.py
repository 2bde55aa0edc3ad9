"""Absolute line numbers that stay true while old lines are dropped.

The library counts only what it keeps. A tracked reference on the first visible row of the primary screen moves with its
line, so the distance between it and the first visible row after a feed is the number of lines that scrolled off. The
reference is lost when its line is dropped or the terminal is reset; feeding in steps that cannot push that many lines
leaves the reset (and input made to defeat this) as the only causes, and both begin a new epoch.
"""

from __future__ import annotations

from wsh.terminal.engine import native
from wsh.terminal.engine.native import NULL, Native, check, ffi, lib

_coordinate = ffi.new("GhosttyPointCoordinate*")
_screen = ffi.new("GhosttyTerminalScreen*")
_history = ffi.new("size_t*")
_cols = ffi.new("uint16_t*")
_keys = ffi.new(
    "GhosttyTerminalData[]",
    [
        lib.GHOSTTY_TERMINAL_DATA_ACTIVE_SCREEN,
        lib.GHOSTTY_TERMINAL_DATA_SCROLLBACK_ROWS,
        lib.GHOSTTY_TERMINAL_DATA_COLS,
    ],
)
_values = ffi.new("void*[]", [_screen, _history, _cols])
_written = ffi.new("size_t*")


class LineNumbers:
    """The numbering of one terminal. `observe` after every step of feeding."""

    __slots__ = (
        "_above_screen",
        "_pin",
        "_stored_above",
        "_terminal",
        "alt",
        "base",
        "cols",
        "epoch",
        "exact",
        "floor",
        "history",
        "kept",
        "reflowed",
        "short",
    )

    def __init__(self, terminal: Native, kept: int, *, base: int = 0, epoch: int = 0, floor: int = 0) -> None:
        self._pin = NULL
        self._terminal = terminal
        self.kept = kept
        self.base = base
        """Number of the first visible row. Those of the alternate screen stand where the primary one has its own."""
        self.epoch = epoch
        self.floor = floor
        """Lines below this number were let go on purpose, whether or not the library still has them."""
        self.alt = False
        self.cols = 0
        """Columns that the library has, which a program can change behind our back."""
        self._above_screen = 0
        self.history = 0
        """Rows that the library has above the primary screen."""
        self._stored_above = -1
        self.reflowed = False
        """Whether the primary screen changed its size while the alternate one showed."""
        self.exact = True
        """Whether `base` and `history` are true; on the alternate screen they may miss what came just before it."""
        self.short = False
        """Whether the library dropped lines although it had no more than are to be kept."""
        self._read()
        if not self.alt:
            self._track()

    @classmethod
    def resumed(
        cls, terminal: Native, kept: int, *, base: int, floor: int, epoch: int, history: int, above: int, reflowed: bool
    ) -> LineNumbers:
        """The numbering of a restored terminal, from what `above` and the attributes said when it was stored."""
        numbers = cls(terminal, kept, base=base, epoch=epoch, floor=floor)
        if numbers.alt:
            numbers.history = history
            numbers.reflowed = reflowed
            numbers._stored_above = above
            numbers.exact = False
        return numbers

    def _is_at_top(self) -> bool:
        """Whether the reference is still the first row of the primary screen, which may not be the one that shows."""
        lost = lib.ghostty_tracked_grid_ref_point(self._pin, native.ACTIVE, _coordinate)
        return not lost and _coordinate.y == 0 and self.above == self.history

    def settle(self, beneath: LineNumbers) -> None:
        """On the alternate screen: take the numbers that the primary screen has on its return."""
        self.close()
        self.base, self.history, self.floor = beneath.base, beneath.history, beneath.floor
        self._stored_above = beneath.history
        self.reflowed = False
        self.exact = True

    @property
    def above(self) -> int:
        """Rows above the tracked row; -1 if it was lost."""
        if self._pin == NULL:
            return self._stored_above
        if lib.ghostty_tracked_grid_ref_point(self._pin, native.SCREEN, _coordinate):
            return -1
        return int(_coordinate.y)

    @property
    def shift(self) -> int:
        """Number of the first row that the library has of the screen that shows."""
        return self.base - self._above_screen

    @property
    def first(self) -> int:
        """Number of the oldest line that is kept."""
        return max(self.base - min(self.history, self.kept), self.floor)

    def close(self, free: Native = lib.ghostty_tracked_grid_ref_free, null: Native = NULL) -> None:
        # what it needs is bound early: at the end of the interpreter the module is empty before its objects are gone
        if self._pin != null:
            free(self._pin)
            self._pin = null

    def __del__(self) -> None:
        self.close()

    def _read(self) -> int:
        check(lib.ghostty_terminal_get_multi(self._terminal, 3, _keys, _values, _written), "terminal_get_multi")
        self.alt = bool(_screen[0] == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)
        self.cols = _cols[0]
        self._above_screen = history = int(_history[0])
        return history

    def _track(self) -> None:
        self.history = int(_history[0])
        self.close()
        out = ffi.new("GhosttyTrackedGridRef*")
        check(native.track_at(self._terminal, native.point(native.ACTIVE, 0, 0), out), "grid_ref_track")
        self._pin = out[0]

    def observe(self, rows: int) -> bool:
        """Bring the numbers up to date after a step; says whether the screen changed between normal and alternate."""
        was_alt = self.alt
        history = self._read()
        if self.alt:
            if not was_alt:
                self.epoch += 1
                self.exact = self._is_at_top()
            return not was_alt
        self.exact = True
        if was_alt:
            self.epoch += 1
        if self.reflowed:
            self._recount(history)
            return was_alt
        above = self.above
        if above < 0 or (self._pin == NULL and history < above):
            # reset, or more lines in one step than are kept: what is here now comes after all there was
            self.base += rows + history
            self.floor = self.base - history
            self.epoch += 1
            self._track()
            return was_alt
        if above == 0 and self.history:
            self.floor = self.base
            self.epoch += 1
        elif above < self.history and history < self.kept:
            self.short = True
        if self._pin == NULL:
            self.base += history - above
            self._track()
        elif above != history:
            self.base += history - above
            self._move(history)
        else:
            self.history = history
        return was_alt

    def _move(self, history: int) -> None:
        self.history = history
        check(native.move_tracked(self._pin, self._terminal, native.point(native.ACTIVE, 0, 0)), "tracked_grid_ref_set")

    def resized(self, rows: int, reflow: bool) -> None:
        """After a new size. With a reflow the oldest line keeps its number, and all others are counted from it."""
        if reflow:
            self.epoch += 1
        if not (reflow or self.alt):
            self.observe(rows)
            return
        history = self._read()
        if self.alt:
            self.reflowed = True  # unseen, beneath
            self.exact = False
        else:
            self._recount(history)

    def _recount(self, history: int) -> None:
        first = self.first
        self.reflowed = False
        self.base = first + min(history, self.kept)
        self.floor = first
        self._track()

    def trimmed(self, keep: int) -> None:
        """After lines were dropped on purpose."""
        history = self._read()
        self.floor = max(self.floor, self.base - keep)
        self.history = history
