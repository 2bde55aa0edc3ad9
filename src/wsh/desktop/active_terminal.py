"""The terminal in front: which one is looked at, from which line, and its picture, sixty times a second at most.

Only rows that changed since the last frame travel. A window that has not drawn yet gets no further frame, so a slow screen sees fewer of
them and never a queue. Knows nothing of approvals.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from wsh.desktop.message import StyledLine, TerminalFrame, WindowNotice
from wsh.desktop.remote import PREFIX, RemoteView
from wsh.session.event import Actor
from wsh.session.session import Session
from wsh.terminal import Terminal, encode_key, encode_mouse, encode_paste
from wsh.terminal.input.mouse import MouseAction, MouseButton

PERSON = Actor("person", "window")
_FRAME_S = 1 / 60
_STEP_S = 0.004
"""A frame that is nearly due is made at once: better early than a whole turn late."""


class ActiveTerminal:
    """`find` gives a session of ours by its id; `begin` runs something that the loop must not lose."""

    def __init__(
        self,
        socket: Path,
        tell: Callable[[object], None],
        find: Callable[[str | None], Session | None],
        begin: Callable[[Callable[[], Awaitable[object] | None]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        self._tell = tell
        self._find = find
        self._begin = begin
        self.sid: str | None = None
        self.size = (24, 80)
        self._view: RemoteView | None = None
        self._scrolled = 0
        self._timer: asyncio.Handle | None = None
        self._last = 0.0
        self._out = False
        self._owed = False
        self._sent: list[StyledLine] | None = None
        """What the window shows; None when it must be told everything."""

    # which one

    def watch(self, sid: str | None) -> None:
        self.sid = sid
        self._scrolled = 0
        self._sent = None
        if self._view is None or self._view.sid != sid:
            self.close()
        if sid is not None and sid.startswith(PREFIX) and self._view is None:
            name = sid.removeprefix(PREFIX)
            self._view = RemoteView(self._socket, name, *self.size, self.schedule)
        self._fit()

    def close(self) -> None:
        """Let go of a session of the server. Idempotent."""
        view, self._view = self._view, None
        if view is not None:
            self._begin(view.aclose)

    def forget_window(self) -> None:
        """The window is gone or new: it has drawn nothing."""
        self._sent = None
        self._out = self._owed = False

    def shown(self) -> Session | RemoteView | None:
        """What is in front: a session of ours, or one of the server's."""
        if self._view is not None and self._view.sid == self.sid:
            return self._view
        return self._find(self.sid)

    def resize(self, rows: int, cols: int) -> None:
        self.size = (max(1, min(rows, 1000)), max(1, min(cols, 1000)))
        self._fit()

    def _fit(self) -> None:
        shown = self.shown()
        if shown is not None and shown.running:
            shown.resize(*self.size)
        self.schedule()

    def _most(self, terminal: Terminal) -> int:
        return 0 if terminal.alt else max(0, terminal.screen_line - terminal.first_line)

    def scroll(self, lines: int) -> None:
        """Move the view up (positive) or down."""
        self.scroll_to(self._scrolled + lines)

    def scroll_to(self, lines: int) -> None:
        """Show what lies this many lines above the newest."""
        session = self.shown()
        if session is not None:
            self._scrolled = max(0, min(lines, self._most(session.terminal)))
            self.schedule()

    def search(self, text: str, backwards: bool = True) -> None:
        """Show the nearest line with `text` above (or below) what is shown; from the end again where there is none."""
        session = self.shown()
        if session is None or not text:
            return
        terminal = session.terminal
        top = terminal.screen_line - self._scrolled
        lines = sorted({hit.line for hit in terminal.search(text)})
        if not lines:
            self._tell(WindowNotice("Not found."))
            return
        if backwards:
            line = max((line for line in lines if line < top), default=lines[-1])
        else:
            line = min((line for line in lines if line > top), default=lines[0])
        self.scroll_to(terminal.screen_line - line)

    # frames

    def frame_taken(self) -> None:
        """The window has drawn the last frame."""
        self._out = False
        if self._owed:
            self.schedule()

    def schedule(self) -> None:
        if self._out:
            self._owed = True
        elif self._timer is None:
            wait = self._last + _FRAME_S - time.monotonic()
            if wait <= _STEP_S:
                self._timer = self._loop.call_soon(self._make)
            else:
                self._timer = self._loop.call_later(wait, self._make)

    def _make(self) -> None:
        self._timer = None
        self._last = time.monotonic()
        session = self.shown()
        if session is None or (isinstance(session, Session) and session.closed):
            return
        self._out, self._owed = True, False
        terminal = session.terminal
        cursor, modes = terminal.cursor, terminal.modes
        self._scrolled = min(self._scrolled, self._most(terminal))
        top = 0 if terminal.alt else terminal.screen_line
        rows: list[Any]
        if self._scrolled:
            first = top - self._scrolled
            rows = list(terminal.lines_between(first, first + terminal.rows, styled=True))
        else:
            rows = list(terminal.styled_rows())
        fresh = self._sent is None
        before = self._sent or []
        changed = tuple(
            (index, row)
            for index, row in enumerate(rows)
            if index >= len(before) or (row is not before[index] and row != before[index])
        )
        self._sent = rows
        self._tell(
            TerminalFrame(
                sid=session.sid,
                count=len(rows),
                changed=changed,
                fresh=fresh,
                cols=terminal.cols,
                cursor_row=cursor.row + self._scrolled,
                cursor_col=cursor.col,
                cursor_visible=cursor.visible and session.running,
                cursor_shape=modes.cursor_shape,
                scrolled=self._scrolled,
                history=0 if terminal.alt else top - terminal.first_line,
                mouse=modes.mouse,
                title=session.title,
                captured=session.captured_by if isinstance(session, RemoteView) else "",
                lost=session.problem if isinstance(session, RemoteView) and session.running else "",
            )
        )

    # input

    async def _send(self, make: Callable[[Terminal], bytes]) -> None:
        session = self.shown()
        if session is not None and session.running:
            self._scrolled = 0
            data = make(session.terminal)
            if isinstance(session, RemoteView):
                await session.send_input(data)
            else:
                await session.input.send(data, PERSON)

    async def press(self, key: str) -> None:
        await self._send(lambda terminal: encode_key(key, terminal))

    async def type_text(self, text: str) -> None:
        await self._send(lambda _: text.encode())

    async def paste(self, text: str) -> None:
        await self._send(lambda terminal: encode_paste(text, terminal))

    async def mouse(self, action: MouseAction, button: MouseButton | None, row: int, col: int) -> None:
        await self._send(lambda terminal: encode_mouse(terminal, action, row, col, button))
