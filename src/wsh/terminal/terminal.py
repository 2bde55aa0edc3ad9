"""One terminal: bytes in, screen out.

Knows no event loop, no file, no clock and no process. Reading is lazy: feeding only parses, and the visible rows are
taken from the library once, at the first look after a feed. Rows are compared by content, so any number of readers can
ask which rows changed since their own last look.
"""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING

from wsh.terminal.correction import CorrectionSearch, correct
from wsh.terminal.engine import native
from wsh.terminal.engine.buffer import SharedBuffer
from wsh.terminal.engine.callbacks import MANY_BELLS, EngineCallbacks, cwd_of, title_of
from wsh.terminal.engine.limit import TerminalLimits, engine_limits, row_bytes, step_bytes, trim_lines
from wsh.terminal.engine.native import NULL, EngineError, Native, check, ffi, lib
from wsh.terminal.engine.note import Note, Work, noted
from wsh.terminal.engine.risk import RiskSearch
from wsh.terminal.engine.view import forget_view
from wsh.terminal.event import AltScreen, TerminalEvent
from wsh.terminal.hidden_screen import open_hidden_screen
from wsh.terminal.line_numbers import LineNumbers
from wsh.terminal.mode import read_modes
from wsh.terminal.row import ActiveRows, read_plain_rows, read_screen_rows, read_wrapped_rows
from wsh.terminal.screen import (
    Line,
    Match,
    ScrollbackPage,
    StyledLine,
    TerminalCursor,
    TerminalModes,
    TerminalScreen,
)
from wsh.terminal.style import parse_row
from wsh.wire.error import InvalidSize

if TYPE_CHECKING:
    from wsh.terminal.snapshot import TerminalState

log = logging.getLogger(__name__)

MAX_SIDE = 1000
_SHORT = 4096
"""Longer output is not looked through for text that the library may not mark."""
_compressed = ffi.new("GhosttyTerminalCompressionResult*")


def _checked_size(rows: int, cols: int) -> tuple[int, int]:
    for side in (rows, cols):
        if not isinstance(side, int) or isinstance(side, bool) or not 1 <= side <= MAX_SIDE:
            raise InvalidSize(rows, cols)
    return rows, cols


def _free(handle: Native) -> None:
    forget_view(handle)
    lib.ghostty_terminal_free(handle)


class Terminal:
    """A terminal without a window. Not for use from several threads at once."""

    __slots__ = (
        "__weakref__",
        "_active",
        "_beneath",
        "_corrections",
        "_decoded",
        "_finalizer",
        "_heavy",
        "_numbers",
        "_plain",
        "_risks",
        "_sink",
        "_sink_handle",
        "_spans",
        "_stale",
        "_step",
        "_unmarked",
        "_version",
        "cols",
        "handle",
        "limits",
        "mended",
        "note",
        "rows",
    )

    def __init__(self, rows: int = 24, cols: int = 80, limits: TerminalLimits | None = None) -> None:
        rows, cols = _checked_size(rows, cols)
        out = ffi.new("GhosttyTerminal*")
        check(lib.ghostty_terminal_new(NULL, out, cols, rows), "terminal_new")
        self._adopt(out[0], rows, cols, limits or TerminalLimits())
        self._numbers = LineNumbers(self.handle, self.limits.scrollback_lines)

    def _adopt(self, handle: Native, rows: int, cols: int, limits: TerminalLimits, *, decoded: bool = False) -> None:
        self.handle: Native = handle
        """The library's terminal, for the encoders of this room."""
        self.rows = rows
        self.cols = cols
        self.limits = limits
        self.mended = 0
        """How often the library lost its state, and a blank screen had to take the place of what there was."""
        self.note: Note | None = None
        """Hears before and after each visit to the library that could be its last."""
        self._finalizer = weakref.finalize(self, _free, handle)
        self._sink = EngineCallbacks(limits, rows, cols)
        self._sink_handle = self._sink.attach(handle)
        self._active = ActiveRows()
        self._spans: dict[bytes, StyledLine] = {}
        self._plain: list[str] | None = None
        self._version = 0
        self._beneath: Terminal | None = None
        self._stale = self._unmarked = True
        self._step = step_bytes(limits)
        self._heavy = False
        self._decoded = decoded
        self._risks = RiskSearch()
        self._corrections = CorrectionSearch()
        native.set_size(handle, lib.GHOSTTY_TERMINAL_OPT_CONTINUATION_MAX_BYTES, limits.continuation_bytes)
        native.set_size(handle, lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE_MAX_BYTES, limits.clipboard_bytes)
        native.set_size(handle, lib.GHOSTTY_TERMINAL_OPT_APC_MAX_BYTES, 64 * 1024)
        # No images: they are memory that a program could fill, and a way to make the server open files.
        ffi_zero = ffi.new("uint64_t*", 0)
        check(
            lib.ghostty_terminal_set(handle, lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_STORAGE_LIMIT, ffi_zero),
            "terminal_set",
        )
        native.set_bool(handle, lib.GHOSTTY_TERMINAL_OPT_TITLE_REPORT, False)
        native.set_text(handle, lib.GHOSTTY_TERMINAL_OPT_TERMINFO_NAME, b"xterm-256color")
        self._set_limits()

    def _set_limits(self) -> None:
        limits = engine_limits(self.limits, self.rows, self.cols, self._heavy)
        # Pages that come out of a snapshot are less full, and the promise is lines: those bound it all the same.
        most = self.limits.scrollback_bytes if self._decoded else limits.bytes
        native.set_size(self.handle, lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, most)
        native.set_size(self.handle, lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_LINES, limits.lines)

    def close(self) -> None:
        """Free the native memory. A closed terminal can be closed again and nothing else."""
        if self.handle is not None:
            self._numbers.close()
            self._forget_beneath()
            self._finalizer()
            self.handle = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # feeding

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Parse output of the program. Nothing is copied."""
        if data:
            self._write(ffi.from_buffer("uint8_t[]", data), len(data))

    def feed_range(self, buffer: SharedBuffer, start: int, length: int) -> None:
        """Parse `length` bytes at `start` of shared memory, without copying."""
        if start < 0 or length < 0 or start + length > buffer.length:
            raise ValueError(f"bytes {start} to {start + length} are outside of the buffer of {buffer.length}")
        if length:
            self._write(buffer.pointer + start, length)

    def is_risky(self, data: bytes) -> bool:
        """Whether `data`, which is fed next, is of a kind that the library is known to die of: see `risk`."""
        return self._risks.look(data, self.rows * self.cols)

    def is_risky_range(self, buffer: SharedBuffer, start: int, length: int) -> bool:
        """The same for bytes in shared memory."""
        return self._risks.look_at(buffer.address + start, length, self.rows * self.cols)

    @property
    def has_margins(self) -> bool:
        """Whether the program may set a left and a right margin (DECLRMM)."""
        return native.get_mode(self.handle, 69)

    def _write(self, pointer: Native, length: int) -> None:
        at = 0
        for end, sequence in self._corrections.find(pointer, length):
            self._parse(pointer + at, end - at)
            parts = correct(
                sequence,
                native.get_u16(self.handle, lib.GHOSTTY_TERMINAL_DATA_CURSOR_Y),
                native.get_u16(self.handle, lib.GHOSTTY_TERMINAL_DATA_CURSOR_X),
            )
            self._parse(ffi.from_buffer("uint8_t[]", parts), len(parts))
            at = end
        if at < length:
            self._parse(pointer + at, length - at)

    def _parse(self, pointer: Native, length: int) -> None:
        write, numbers = lib.ghostty_terminal_vt_write, self._numbers
        handle, observe, rows, cols, step = self.handle, numbers.observe, self.rows, self.cols, self._step
        sink = self._sink
        self._stale, self._plain = True, None
        if not self._unmarked:
            self._unmarked = length > _SHORT or not ffi.buffer(pointer, length)[:].isascii()
        at = 0
        while at < length:
            size = min(step, length - at)
            write(handle, pointer + at, size)
            at += size
            try:
                switched = observe(rows)
            except EngineError as problem:
                self.mend(problem)
                return self._parse(pointer + at, length - at) if at < length else None
            if switched:
                sink.add(AltScreen(numbers.alt))
                self._forget_beneath()
            if numbers.cols != cols:
                self._take_size_back()
            if sink.bells > MANY_BELLS and not sink.deaf:
                sink.stop_listening(handle)
        if numbers.short and not self._heavy:
            self._heavy = True
            self._set_limits()

    @noted(Work.RESIZE)
    def resize(
        self, rows: int, cols: int, *, cell_width_px: int | None = None, cell_height_px: int | None = None
    ) -> None:
        """Change the size; wrapped lines of the normal screen flow anew where the width changes."""
        rows, cols = _checked_size(rows, cols)
        sink = self._sink
        if cell_width_px:
            sink.cell_width = cell_width_px
        if cell_height_px:
            sink.cell_height = cell_height_px
        reflow = flows = cols != self.cols
        if reflow and rows > self.rows:
            # At once, the library would leave the rows that are gained blank; alone, it fills them with the lines above.
            sink.cols = self.cols = cols
            self._resize_engine(True)
            flows = False
        sink.rows, sink.cols = self.rows, self.cols = rows, cols
        self._resize_engine(flows)
        if reflow:
            self._set_limits()
            self._numbers.observe(rows)  # the new limits may have let go of lines

    def _resize_engine(self, reflow: bool) -> None:
        sink, rows = self._sink, self.rows
        check(
            lib.ghostty_terminal_resize(self.handle, self.cols, rows, sink.cell_width, sink.cell_height),
            "terminal_resize",
        )
        self._stale, self._plain = True, None
        self._active.forget()
        self._forget_beneath()
        self._numbers.resized(rows, reflow)

    def mend(self, problem: EngineError) -> None:
        """The library failed at something that always works. Bring it into a state that is known, a blank one at worst."""
        if native.get_u16(self.handle, lib.GHOSTTY_TERMINAL_DATA_COLS) != self.cols:
            self._take_size_back()
            return
        log.error("a terminal of %d x %d is begun anew: %s", self.rows, self.cols, problem)
        before, note, mended = self._numbers, self.note, self.mended + 1
        replies, events = self._sink.replies, self._sink.events
        out = ffi.new("GhosttyTerminal*")
        check(lib.ghostty_terminal_new(NULL, out, self.cols, self.rows), "terminal_new")
        self.close()
        version = self._version + 1
        self._adopt(out[0], self.rows, self.cols, self.limits)
        self._version, self.note, self.mended = version, note, mended
        self._sink.replies, self._sink.events = replies, events
        base = before.base + self.rows
        self._numbers = LineNumbers(self.handle, before.kept, base=base, epoch=before.epoch + 1, floor=base)

    def _take_size_back(self) -> None:
        """The program asked for 80 or 132 columns (DECCOLM). The width is not its own to choose: the pty keeps it."""
        self._resize_engine(True)

    # what the program asked and said

    def take_replies(self) -> bytes:
        """Answers to the program's questions since the last call; they belong on its input."""
        replies = bytes(self._sink.replies)
        self._sink.replies.clear()
        return replies

    def take_events(self) -> list[TerminalEvent]:
        """What happened since the last call, oldest first."""
        return self._sink.take(self.handle) if self._sink.events else []

    @property
    def title(self) -> str:
        return title_of(self.handle)

    @property
    def cwd(self) -> str | None:
        """The directory the shell reported by OSC 7, if it is one of this host."""
        return cwd_of(self.handle)

    @property
    def alt(self) -> bool:
        return self._numbers.alt

    @property
    def cursor(self) -> TerminalCursor:
        return TerminalCursor(*native.read_cursor(self.handle))

    @property
    def cursor_line(self) -> int:
        """Absolute number of the line that the cursor is on."""
        return self._exact_numbers().base + native.get_u16(self.handle, lib.GHOSTTY_TERMINAL_DATA_CURSOR_Y)

    @property
    def screen_line(self) -> int:
        """Absolute number of the first visible line: what lies before it does not change any more."""
        return self._exact_numbers().base

    @property
    def at_ground(self) -> bool:
        """Whether the last byte fed ended outside of any escape sequence or character."""
        return native.get_bool(self.handle, lib.GHOSTTY_TERMINAL_DATA_VT_GROUND)

    @property
    def modes(self) -> TerminalModes:
        return read_modes(self.handle)

    @property
    def modify_other_keys(self) -> bool:
        """Whether the program asked xterm's way for keys that have no byte of their own."""
        return b"\x1b[>4;2m" in native.format_with(self.handle, ("keyboard",), ())[0]

    @property
    def bracketed_paste(self) -> bool:
        return native.get_mode(self.handle, 2004)

    # reading the screen

    def _refresh(self) -> None:
        if self._stale:
            self._read_active()

    @noted(Work.READ)
    def _read_active(self) -> None:
        if self._active.refresh(self.handle, self.rows, self.cols, all_of_them=self._unmarked):
            self._version += 1
        self._stale = self._unmarked = False

    def _styled(self, rows: list[bytes]) -> list[Line]:
        known = self._spans
        used: dict[bytes, StyledLine] = {}
        lines: list[Line] = []
        for row in rows:
            spans = used.get(row)
            if spans is None:
                spans = known.get(row)
                used[row] = spans = parse_row(row) if spans is None else spans
            lines.append(spans)
        self._spans = used
        return lines

    @noted(Work.READ)
    def _plain_rows(self) -> list[str]:
        """The visible rows as text, without taking their styles along."""
        if self._plain is None:
            self._plain = read_plain_rows(self.handle, native.ACTIVE, 0, self.rows - 1, self.cols)
        return self._plain

    @property
    def version(self) -> int:
        """Grows when a visible row has changed since the last look."""
        self._refresh()
        return self._version

    def vt_rows(self, first: int = 0, last: int | None = None) -> list[bytes]:
        """Visible rows as VT bytes, each complete in itself: style set before the text and reset after it."""
        self._refresh()
        return self._active.rows[first : None if last is None else last + 1]

    @property
    def flowing_rows(self) -> frozenset[int]:
        """Visible rows whose line goes on in the next one, and which are full up to there."""
        self._refresh()
        return self._active.flowing

    def styled_rows(self, first: int = 0, last: int | None = None) -> list[StyledLine]:
        """Visible rows as spans."""
        return self.screen(True).lines[first : None if last is None else last + 1]  # type: ignore[return-value]  # styled, so every line is one of spans

    def _used_rows(self) -> int:
        """Visible rows without the blank ones below the cursor."""
        cursor = native.get_u16(self.handle, lib.GHOSTTY_TERMINAL_DATA_CURSOR_Y)
        rows = self._plain_rows()
        used = len(rows)
        while used > cursor + 1 and not rows[used - 1]:
            used -= 1
        return used

    @noted(Work.READ)
    def screen(self, styled: bool = True) -> TerminalScreen:
        """The visible screen now."""
        lines: list[Line]
        if styled:
            self._refresh()
            lines = self._styled(self._active.rows)
        else:
            lines = list(self._plain_rows())
        numbers = self._exact_numbers()
        base = numbers.base
        return TerminalScreen(
            lines,
            self.cursor,
            self.rows,
            self.cols,
            "alt" if numbers.alt else "normal",
            numbers.epoch,
            base,
            base + self._used_rows(),
            self._version,
        )

    # scrollback

    @property
    def epoch(self) -> int:
        return self._numbers.epoch

    @property
    def first_line(self) -> int:
        """Absolute number of the oldest line that is kept."""
        return self._exact_numbers().first

    @property
    def total_lines(self) -> int:
        """Absolute number of the line that comes next."""
        return self._exact_numbers().base + self._used_rows()

    @property
    def dropped_lines(self) -> int:
        """Lines of the normal screen that are no longer kept."""
        return self._numbers.first

    @noted(Work.READ)
    def scrollback(
        self, offset: int = 0, limit: int = 100, *, styled: bool = False, since_line: int | None = None
    ) -> ScrollbackPage:
        """`limit` lines that end `offset` lines before the newest; the visible screen is included.

        With `since_line`, the first `limit` lines from that absolute number on (or from the oldest kept one).
        """
        first, total_lines = self.first_line, self.total_lines
        if self._numbers.alt and first < self._numbers.base and self.beneath() is None:
            first = self._numbers.base
        offset, limit = max(0, offset), max(0, limit)
        if since_line is None:
            end = max(first, total_lines - offset)
            start = max(first, end - limit)
        else:
            start = min(max(first, since_line), total_lines)
            end = min(total_lines, start + limit)
        lines = self.lines_between(start, end, styled)
        wrapped = self._find_wrapped(start, lines)
        return ScrollbackPage(lines, total_lines - first, total_lines, total_lines - end, start, self.epoch, wrapped)

    def _exact_numbers(self) -> LineNumbers:
        numbers = self._numbers
        if not numbers.exact:
            self.beneath()
        return numbers

    @noted(Work.READ)
    def beneath(self) -> Terminal | None:
        """The normal screen with its scrollback, while the alternate screen shows. Belongs to this terminal."""
        numbers = self._numbers
        if not numbers.alt:
            return None
        if self._beneath is None:
            self._beneath = found = open_hidden_screen(self)
            if found is not None:
                found.compress()
                if not numbers.exact:
                    numbers.settle(found._numbers)
        return self._beneath

    def _forget_beneath(self) -> None:
        if self._beneath is not None:
            self._beneath.close()
            self._beneath = None

    @noted(Work.READ)
    def lines_between(self, first: int, last: int, styled: bool = False) -> list[Line]:
        """Lines with absolute numbers from `first` up to but without `last`, as far as they are kept."""
        numbers = self._exact_numbers()
        first, last = max(first, numbers.first), min(last, numbers.base + self.rows)
        if first >= last:
            return []
        if numbers.alt and first < numbers.base:
            beneath = self.beneath()
            before = beneath.lines_between(first, min(last, numbers.base), styled) if beneath is not None else []
            return before + self.lines_between(numbers.base, last, styled)
        # rows are counted from the oldest that the library has, which may be older than what we still show
        shift = numbers.shift
        if not styled:
            return list(read_plain_rows(self.handle, native.SCREEN, first - shift, last - 1 - shift, self.cols))
        return [parse_row(row) for row in read_screen_rows(self.handle, first - shift, last - 1 - shift, self.cols)]

    def _find_wrapped(self, first: int, lines: list[Line]) -> list[int]:
        """Which of these lines, read from `first` on, go on in the next; in order."""
        numbers = self._numbers
        if numbers.alt and first < numbers.base:
            beneath, above = self.beneath(), numbers.base - first
            found = beneath._find_wrapped(first, lines[:above]) if beneath is not None else []
            # The last one goes on in a row that the alternate screen hides.
            return [
                *(line for line in found if line < numbers.base - 1),
                *self._find_wrapped(numbers.base, lines[above:]),
            ]
        end = min(first + len(lines), numbers.base + self.rows - 1)  # below the last row of the screen there is none
        if first >= end:
            return []
        used = len(lines)
        while used and not lines[used - 1]:
            used -= 1
        # Asking for each row takes several times as long as reading the text: as many lines as rows wrap nowhere.
        shift, last = numbers.shift, first + len(lines) - 1
        text = native.format_logical(self.handle, native.SCREEN, first - shift, last - shift, self.cols).rstrip(b" \n")
        if text.count(b"\n") == used - 1 and not self.wraps(end - 1):
            return []
        return [line for line in range(first, end) if self.wraps(line)]

    def wraps(self, line: int) -> bool:
        """Whether the line with this absolute number goes on in the next."""
        return native.row_flags(self.handle, native.SCREEN, line - self._numbers.shift)[1]

    @noted(Work.READ)
    def text_between(self, first: int, last: int) -> list[str]:
        """Lines from `first` up to but without `last` as text, wrapped ones joined; blank ones at the end are left out.

        Neither end may lie inside of a wrapped line.
        """
        shift = self._numbers.shift
        if first >= last:
            return []
        text = native.format_logical(self.handle, native.SCREEN, first - shift, last - 1 - shift, self.cols)
        return [line.rstrip(" ") for line in text.decode("utf-8", "replace").split("\n")] if text else []

    @noted(Work.READ)
    def vt_lines_between(self, first: int, last: int) -> tuple[list[bytes], list[bool]]:
        """The same as VT bytes, each line complete in itself, and of each whether it fills its row and flows into the next."""
        numbers = self._exact_numbers()
        first, last = max(first, numbers.first), min(last, numbers.base + self.rows)
        if first >= last:
            return [], []
        if numbers.alt and first < numbers.base:
            beneath = self.beneath()
            before, flow = beneath.vt_lines_between(first, min(last, numbers.base)) if beneath is not None else ([], [])
            lines, flows = self.vt_lines_between(numbers.base, last)
            return before + lines, flow + flows
        top = first - numbers.shift
        lines, wraps = read_wrapped_rows(self.handle, top, last - 1 - numbers.shift, self.cols)
        if True in wraps:
            most = numbers.base + self.rows - first - 1  # below the last row of the screen there is none
            for index, wrapping in enumerate(wraps):
                wraps[index] = (
                    wrapping and index < most and native.is_full(self.handle, native.SCREEN, top + index, self.cols)
                )
        return lines, wraps

    @noted(Work.READ)
    def trim_scrollback(self, keep_lines: int) -> int:
        """Let go of all but the newest `keep_lines` above the screen; returns how many lines that were.

        Memory is given back in pages of some hundred lines. Does nothing on the alternate screen.
        """
        numbers = self._numbers
        if numbers.alt:
            return 0
        before = numbers.first
        keep_lines = max(0, keep_lines)
        native.set_size(self.handle, lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_LINES, trim_lines(keep_lines, self.cols))
        numbers.trimmed(keep_lines)
        self._set_limits()
        self._stale = True
        return numbers.first - before

    @property
    def memory_bytes(self) -> int:
        """About what this terminal holds in memory."""
        plain = (self._numbers.history + 2 * self.rows) * row_bytes(self.cols) + 16 * 1024
        if not self._heavy:
            return plain
        # larger pages cannot be asked for their size: as much as they may take at most
        most = engine_limits(self.limits, self.rows, self.cols, True)
        return max(plain, min(most.bytes, most.bytes * self._numbers.history // max(1, self.limits.scrollback_lines)))

    @noted(Work.READ)
    def compress(self) -> None:
        """Pack the scrollback of a terminal that is at rest: a tenth of the memory, unpacked where it is read."""
        check(
            lib.ghostty_terminal_compress(self.handle, lib.GHOSTTY_TERMINAL_COMPRESSION_MODE_FULL, _compressed),
            "terminal_compress",
        )

    # search

    @noted(Work.SEARCH)
    def search(
        self,
        pattern: str,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        since_line: int | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Match]:
        """Where `pattern` occurs in what is kept; a line that wraps is searched as one."""
        from wsh.terminal.search import find_matches

        return find_matches(
            self,
            pattern,
            regex=regex,
            ignore_case=ignore_case,
            since_line=since_line,
            limit=limit,
            newest_first=newest_first,
        )

    # the whole state as bytes

    @noted(Work.REPLAY)
    def replay(self, scrollback_lines: int | None = None) -> bytes:
        """VT bytes that bring a fresh emulator of this size into this state, with at most so many lines above."""
        from wsh.terminal.replay import make_replay

        return make_replay(self, scrollback_lines)

    @noted(Work.SNAPSHOT)
    def take_state(self) -> TerminalState:
        """Everything, also in the middle of an escape sequence or character."""
        from wsh.terminal.snapshot import take_state

        return take_state(self)

    def snapshot(self) -> bytes:
        """The same as bytes for `restore`."""
        return b"".join(self.take_state().to_parts())

    @classmethod
    def restore(cls, data: bytes, limits: TerminalLimits | None = None) -> Terminal:
        """The terminal that `snapshot` wrote; `SnapshotCorrupt` if the bytes are not whole."""
        from wsh.terminal.snapshot import decode

        return decode(cls, data, limits or TerminalLimits())
