"""What a command printed, as text: raw bytes rendered through a terminal of their own and cut where they are too many.

Rendering is a stream: lines that have left the scratch screen are final, are taken from it and dropped there, so the memory is
that of the text and not that of the cells. The session's own screen is never looked at.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from wsh.session.recovery.note import EngineNote
from wsh.terminal.engine.limit import TerminalLimits
from wsh.terminal.engine.note import Work
from wsh.terminal.screen import Line, StyledLine
from wsh.terminal.terminal import Terminal
from wsh.wire.buffer import OutputBuffer

_STEP_BYTES = 16 * 1024
# More lines than one step can push off the screen, or lines would be dropped before they are taken.
RENDER_LIMITS = TerminalLimits(scrollback_lines=2 * _STEP_BYTES)
_TURN_BYTES = 4 * _STEP_BYTES
_LONG_ROWS = _STEP_BYTES
LEAVE_ALT = b"\x18\x1b[?1049l\x1b[?1047l\x1b[?47l"

KEEP_BYTES = 2 * 1024 * 1024
HALF_BYTES = 512 * 1024


class Printer(Protocol):
    """Whose output is rendered."""

    note: EngineNote | None
    offset: int
    """Bytes that it has printed."""


_rendered: ContextVar[tuple[Printer, int, int | None] | None] = ContextVar("rendered", default=None)


@contextmanager
def rendering(printer: Printer, start: int, end: int | None) -> Iterator[None]:
    """What is rendered meanwhile is this part of that one's output (up to now, if it has no end): noted, as it may kill."""
    token = _rendered.set((printer, start, end))
    try:
        yield
    finally:
        _rendered.reset(token)


def _noted() -> AbstractContextManager[None]:
    whose = _rendered.get()
    if whose is None or whose[0].note is None:
        return nullcontext()
    printer, start, end = whose
    end = printer.offset if end is None else end
    return printer.note.during(Work.RENDER, start, max(0, end - start))  # type: ignore[union-attr]  # looked at above


class LineRenderer:
    """Raw output in, finished lines out. A line that wraps over several rows is one line."""

    def __init__(self, rows: int, cols: int, *, styled: bool = False) -> None:
        self._terminal = Terminal(rows, cols, RENDER_LIMITS)
        self._styled = styled
        self._taken = 0
        self._blank = 0
        self._wrapped_to = 0
        """Up to here every row that is left is known to go on in the next."""
        self._prefix = ""

    def close(self) -> None:
        self._terminal.close()

    def feed(self, data: bytes | memoryview) -> list[Line]:
        """Parse, and give the lines that cannot change any more."""
        lines: list[Line] = []
        view = memoryview(data)
        with _noted():
            for at in range(0, len(view), _STEP_BYTES):
                self._terminal.feed(view[at : at + _STEP_BYTES])
                self._terminal.take_replies()
                self._terminal.take_events()
                if not self._terminal.alt:
                    lines += self._take(self._terminal.screen_line)
        return lines

    def finish(self) -> list[Line]:
        """The lines that are left. What a program left on the alternate screen is not output. Closes the renderer."""
        with _noted():
            return self._finish()

    def _finish(self) -> list[Line]:
        terminal = self._terminal
        terminal.feed(LEAVE_ALT)
        lines = self._take(terminal.screen_line)
        end = terminal.total_lines
        if self._styled:
            rest = self._styled_lines(max(self._taken, terminal.first_line), end)
            while rest and not rest[-1]:
                rest.pop()
        else:
            text = terminal.text_between(max(self._taken, terminal.first_line), end)
            rest = self._join(text or [""] if self._prefix else text)
        self.close()
        return lines + rest

    def _take(self, end: int) -> list[Line]:
        terminal = self._terminal
        first = max(self._taken, terminal.first_line)
        newest, known = end, max(first, self._wrapped_to)
        while end > known and terminal.wraps(end - 1):
            end -= 1
        if end == known:
            end = first  # still inside of one long line
            self._wrapped_to = newest
        if end <= first:
            if newest - first > _LONG_ROWS and not self._styled:
                self._prefix += "".join(terminal.text_between(first, newest))
                self._taken = newest
            return []
        self._taken = end
        if self._styled:
            return list(self._styled_lines(first, end))
        # Blank lines at the end may be the end of the output: they are given when something follows.
        last = end
        if not terminal.text_between(end - 1, end):
            rows = terminal.lines_between(first, end)
            while last > first and not rows[last - 1 - first]:
                last -= 1
                if last > first and terminal.wraps(last - 1):
                    self._blank -= 1
        lines = self._join(terminal.text_between(first, last))
        self._blank += end - last
        return lines

    def _join(self, text: list[str]) -> list[Line]:
        if self._prefix and text:
            text = [self._prefix + text[0], *text[1:]]
            self._prefix = ""
        return [*self._blanks(), *text] if text else []

    def _blanks(self) -> list[Line]:
        count, self._blank = self._blank, 0
        return [""] * count

    def _styled_lines(self, first: int, end: int) -> list[Line]:
        lines: list[Line] = []
        joined: StyledLine | None = None
        for number, row in enumerate(self._terminal.lines_between(first, end, styled=True), first):
            assert not isinstance(row, str)
            joined = row if joined is None else joined + row
            if not self._terminal.wraps(number):
                lines.append(joined)
                joined = None
        if joined is not None:
            lines.append(joined)
        return lines


@dataclass(frozen=True)
class OutputText:
    """Output with its middle left out where it was longer than asked for. Counts are of rendered text."""

    text: str
    total_bytes: int
    total_lines: int
    omitted_bytes: int = 0
    omitted_lines: int = 0

    @property
    def truncated(self) -> bool:
        return self.omitted_bytes > 0


class Cutter:
    """Text in, its head and tail out; bounded whatever comes."""

    def __init__(self, max_bytes: int) -> None:
        self._head_room = (max_bytes + 1) // 2
        self._tail_room = max(max_bytes - self._head_room, 1)
        self._max = max_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self.newlines = 0
        self._empty = True

    def add(self, lines: list[Line]) -> None:
        for line in lines:
            raw = _text(line).encode("utf-8", "replace")
            if not self._empty:
                raw = b"\n" + raw
                self.newlines += 1
            self._empty = False
            self.total_bytes += len(raw)
            room = self._max - len(self._head) if not self._tail else 0
            if room > 0:
                self._head += raw[:room]
                raw = raw[room:]
            if raw:
                self._tail += raw
                if len(self._tail) > 4 * self._max + 65536:
                    del self._tail[: -self._max]

    def cut(self, skipped_bytes: int = 0, skipped_newlines: int = 0) -> OutputText:
        """`skipped_…` were left out before they came here, between head and tail."""
        total, newlines = self.total_bytes + skipped_bytes, self.newlines + skipped_newlines
        count = 0 if self._empty else newlines + 1
        if total <= self._max:
            return OutputText((self._head + self._tail).decode("utf-8", "replace"), total, count)
        whole = self._head + self._tail
        head, tail = _whole_lines(bytes(whole[: self._head_room]), bytes(whole[-self._tail_room :]))
        omitted = total - len(head) - len(tail)
        # Between two whole lines there is one more newline than lines.
        lines = max(0, newlines - head.count(b"\n") - tail.count(b"\n") - 1)
        note = f"\n[... {omitted} bytes in {lines} lines left out ...]\n"
        text = head.decode("utf-8", "ignore") + note + tail.decode("utf-8", "ignore")
        return OutputText(text, total, count, omitted, lines)


def _whole_lines(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    """Both cut back to whole lines, unless that would lose more than half of them."""
    last = head.rfind(b"\n")
    if last >= len(head) // 2:
        head = head[:last]
    first = tail.find(b"\n")
    if 0 <= first <= len(tail) // 2:
        tail = tail[first + 1 :]
    return head, tail


class Capture(OutputBuffer):
    """The raw output of the running command: all of it, or its head and tail if it is long."""

    def __init__(self, begin: int) -> None:
        super().__init__(KEEP_BYTES, begin)
        self.begin = begin
        self._head: bytes | None = None
        """The first bytes, once they are not the beginning of what is kept; from then on lines are counted."""
        self._newlines = 0

    def append(self, data: bytes | memoryview) -> None:
        if self._head is None and self.kept_bytes + len(data) > KEEP_BYTES:
            kept = self.newest
            self._head = (kept + data)[:HALF_BYTES]
            self._newlines = kept.count(b"\n")
            self.max_bytes = HALF_BYTES
        if self._head is not None:
            self._newlines += bytes(data).count(b"\n")
        super().append(data)

    def truncate(self, end: int) -> None:
        """Forget the newest bytes, from offset `end` on."""
        self._newlines -= self.read(max(end, self.start)).data.count(b"\n")
        super().truncate(end)

    @property
    def complete(self) -> bool:
        return self._head is None

    @property
    def newest(self) -> bytes:
        """The end of it, half a megabyte where there is so much."""
        return self.read().data

    @property
    def held_bytes(self) -> int:
        return self.kept_bytes + len(self._head or b"")

    async def render(self, rows: int, cols: int, max_bytes: int) -> OutputText:
        """As text. Works on a copy, so that more may be added meanwhile."""
        cutter = Cutter(max_bytes)
        head, tail, printed, newlines = self._head, self.newest, self.end - self.begin, self._newlines
        if head is None:
            await _render_into(cutter, tail, rows, cols)
            return cutter.cut()
        await _render_into(cutter, head, rows, cols)
        first = tail.find(b"\n") + 1
        await _render_into(cutter, tail[first:], rows, cols)
        skipped = printed - len(head) - (len(tail) - first)
        left_out = newlines - head.count(b"\n") - tail.count(b"\n", first)
        return cutter.cut(skipped, max(0, left_out - 1))


async def _render_into(cutter: Cutter, data: bytes, rows: int, cols: int) -> None:
    """In turns, so that a megabyte does not stop the loop."""
    renderer = LineRenderer(rows, cols)
    try:
        for at in range(0, len(data), _TURN_BYTES):
            if at:
                await asyncio.sleep(0)
            cutter.add(renderer.feed(data[at : at + _TURN_BYTES]))
        cutter.add(renderer.finish())
    finally:
        renderer.close()


async def render(data: bytes, rows: int, cols: int, max_bytes: int) -> OutputText:
    """All of `data` as text, cut to `max_bytes`."""
    cutter = Cutter(max_bytes)
    await _render_into(cutter, data, rows, cols)
    return cutter.cut()


_ENDS_A_LINE = re.compile(rb"\n(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r)*\Z")


async def render_printed(data: bytes, rows: int, cols: int) -> str:
    """All of `data` as text, with the line feed at its end if it has one: a text that the next one may follow."""
    cutter = Cutter(len(data) * 8 + rows * cols * 8)
    await _render_into(cutter, data, rows, cols)
    text = cutter.cut().text
    return text + "\n" if _ENDS_A_LINE.search(data[-4096:]) is not None else text


def render_now(data: bytes, rows: int, cols: int) -> str:
    """A little raw output as text, at once."""
    renderer = LineRenderer(rows, cols)
    lines = renderer.feed(data) + renderer.finish()
    return "\n".join(line for line in lines if isinstance(line, str))


@dataclass(frozen=True)
class OutputPage:
    """Some lines of a command's output, or of the lines in it that match."""

    lines: list[Line]
    offset: int
    total: int
    """Lines of the output, whether they match or not."""
    numbers: list[int] | None = None
    """With a search: where in the output each line is, from 0."""
    matches: int | None = None
    missing_bytes: int = 0
    """Raw output that is no longer kept."""


async def read_page(
    pieces: AsyncIterator[bytes],
    rows: int,
    cols: int,
    *,
    offset: int = 0,
    limit: int = 1000,
    styled: bool = False,
    matches: Callable[[str], bool] | None = None,
) -> OutputPage:
    """`limit` lines from line (or match) number `offset` on. Reads all of `pieces` and keeps only what was asked for."""
    renderer = LineRenderer(rows, cols, styled=styled)
    found: list[Line] = []
    numbers: list[int] = []
    total = hits = 0

    def take(lines: list[Line]) -> None:
        nonlocal total, hits
        for line in lines:
            if matches is None or matches(_text(line)):
                if offset <= hits < offset + limit:
                    found.append(line)
                    numbers.append(total)
                hits += 1
            total += 1

    try:
        async for piece in pieces:
            for at in range(0, len(piece), _TURN_BYTES):
                take(renderer.feed(piece[at : at + _TURN_BYTES]))
                await asyncio.sleep(0)
        take(renderer.finish())
    finally:
        renderer.close()
    if matches is None:
        return OutputPage(found, offset, total)
    return OutputPage(found, offset, total, numbers, hits)


def _text(line: Line) -> str:
    return line if isinstance(line, str) else "".join(str(span["text"]) for span in line)
