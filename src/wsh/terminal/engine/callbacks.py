"""Where the library's callbacks put what they are told: answers for the program, and events.

One set of callbacks serves all terminals; each terminal's `EngineCallbacks` travels as the callbacks' user data. Nothing here may
raise (an exception cannot cross C) or feed the terminal (the library forbids it during a callback).
"""

from __future__ import annotations

import re
from typing import Literal

from wsh.terminal.engine import native
from wsh.terminal.engine.limit import TerminalLimits
from wsh.terminal.engine.native import Native, ffi, lib
from wsh.terminal.event import (
    ClipboardWrite,
    TerminalBell,
    TerminalCwdChanged,
    TerminalEvent,
    TerminalNotification,
    TerminalProgress,
    TerminalTitleChanged,
)
from wsh.terminal.pwd import path_of

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LOCATIONS: tuple[Literal["clipboard", "selection", "primary"], ...] = ("clipboard", "selection", "primary")
_PROGRESS: tuple[Literal["remove", "set", "error", "indeterminate", "pause"], ...] = (
    "remove",
    "set",
    "error",
    "indeterminate",
    "pause",
)
_VERSION = b"wsh"
_version_buffer = ffi.from_buffer(_VERSION)
_clipboard_reply = native.new_sized("GhosttyClipboardWriteReply")
_clipboard_reply.result = lib.GHOSTTY_CLIPBOARD_WRITE_RESULT_SUCCESS
MAX_TITLE = 1024


def clean(raw: bytes, limit: int = MAX_TITLE) -> str:
    """Text of a program as one line without control characters."""
    return _CONTROL.sub("", raw.decode("utf-8", "replace"))[:limit]


def title_of(terminal: Native) -> str:
    return clean(native.get_string(terminal, lib.GHOSTTY_TERMINAL_DATA_TITLE))


def cwd_of(terminal: Native) -> str | None:
    return path_of(native.get_string(terminal, lib.GHOSTTY_TERMINAL_DATA_PWD))


MANY_BELLS = 100
# Programs can set titles by the million, so the callbacks only leave a mark.
_TITLE = TerminalTitleChanged("")
_BELL = TerminalBell(0)
_CWD = TerminalCwdChanged(None)


class EngineCallbacks:
    __slots__ = (
        "bells",
        "cell_height",
        "cell_width",
        "cols",
        "deaf",
        "dropped",
        "events",
        "limits",
        "replies",
        "rows",
    )

    def __init__(self, limits: TerminalLimits, rows: int, cols: int) -> None:
        self.limits = limits
        self.replies = bytearray()
        self.events: list[TerminalEvent] = []  # not a deque, which takes 0.7 KB where it is empty
        self.dropped = 0
        self.bells = 0
        self.deaf = False
        self.rows = rows
        self.cols = cols
        self.cell_width = 8
        self.cell_height = 16

    def attach(self, terminal: Native) -> Native:
        """Receive what the terminal says for as long as the result is alive."""
        handle = ffi.new_handle(self)
        native.set_pointer(terminal, lib.GHOSTTY_TERMINAL_OPT_USERDATA, handle)
        for option, callback in _CALLBACKS:
            native.set_pointer(terminal, option, callback)
        return handle

    def add(self, event: TerminalEvent) -> None:
        if len(self.events) == self.limits.events:
            self.dropped += 1
            del self.events[0]
        self.events.append(event)

    def note(self, mark: TerminalEvent) -> None:
        """Remember that something changed. Its new value is read when the events are taken."""
        if not self.events or self.events[-1] is not mark:
            self.add(mark)

    def take(self, terminal: Native) -> list[TerminalEvent]:
        taken: list[TerminalEvent] = []
        known: set[TerminalEvent] = set()
        for event in self.events:
            if event is _TITLE or event is _CWD or event is _BELL:
                if event in known:
                    continue
                known.add(event)
                event = self._now(event, terminal)
            taken.append(event)
        self.events.clear()
        self.bells = 0
        if self.deaf:
            self.deaf = False
            native.set_pointer(terminal, lib.GHOSTTY_TERMINAL_OPT_BELL, _bell)
        return taken

    def _now(self, mark: TerminalEvent, terminal: Native) -> TerminalEvent:
        if mark is _TITLE:
            return TerminalTitleChanged(title_of(terminal))
        if mark is _CWD:
            return TerminalCwdChanged(cwd_of(terminal))
        return TerminalBell(self.bells)

    def stop_listening(self, terminal: Native) -> None:
        """No bell is heard until the events are taken: a program that rings by the million costs time."""
        self.deaf = True
        native.set_pointer(terminal, lib.GHOSTTY_TERMINAL_OPT_BELL, ffi.NULL)


def _failed(kind: object, problem: object, trace: object) -> None:
    """An exception in a callback has nowhere to go; the callback's default answer stands."""


def _text(string: Native) -> bytes:
    return bytes(ffi.buffer(string.ptr, string.len)) if string.len else b""


@ffi.callback("GhosttyTerminalWritePtyFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _write_pty(terminal: Native, userdata: Native, data: Native, length: int) -> None:
    sink: EngineCallbacks = ffi.from_handle(userdata)
    if len(sink.replies) + length <= sink.limits.reply_bytes:
        sink.replies += ffi.buffer(data, length)
    else:
        sink.dropped += 1


@ffi.callback("GhosttyTerminalBellFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _bell(terminal: Native, userdata: Native) -> None:
    sink: EngineCallbacks = ffi.from_handle(userdata)
    sink.bells += 1
    if not sink.events or sink.events[-1] is not _BELL:
        sink.add(_BELL)


@ffi.callback("GhosttyTerminalTitleChangedFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _title_changed(terminal: Native, userdata: Native) -> None:
    ffi.from_handle(userdata).note(_TITLE)


@ffi.callback("GhosttyTerminalPwdChangedFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _pwd_changed(terminal: Native, userdata: Native) -> None:
    ffi.from_handle(userdata).note(_CWD)


@ffi.callback("GhosttyTerminalSizeFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _size(terminal: Native, userdata: Native, out: Native) -> bool:
    sink: EngineCallbacks = ffi.from_handle(userdata)
    out.rows, out.columns = sink.rows, sink.cols
    out.cell_width, out.cell_height = sink.cell_width, sink.cell_height
    return True


@ffi.callback("GhosttyTerminalXtversionFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _xtversion(terminal: Native, userdata: Native) -> Native:
    answer = ffi.new("GhosttyString*")
    answer.ptr, answer.len = ffi.cast("const uint8_t*", _version_buffer), len(_VERSION)
    return answer[0]


@ffi.callback("GhosttyTerminalClipboardWriteFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _clipboard_write(terminal: Native, userdata: Native, write: Native) -> None:
    sink: EngineCallbacks = ffi.from_handle(userdata)
    data = b""
    for index in range(write.contents_len):
        content = write.contents[index]
        if index == 0 or _text(content.mime).startswith(b"text/plain"):
            data = _text(content.data)
    sink.add(ClipboardWrite(_LOCATIONS[min(write.location, 2)], data[: sink.limits.clipboard_bytes]))
    write.reply(write, _clipboard_reply)


@ffi.callback("GhosttyTerminalDesktopNotificationFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _notification(terminal: Native, userdata: Native, notification: Native) -> None:
    ffi.from_handle(userdata).add(
        TerminalNotification(clean(_text(notification.title)), clean(_text(notification.body), 4096))
    )


@ffi.callback("GhosttyTerminalProgressReportFn", onerror=_failed)  # type: ignore[untyped-decorator]  # cffi has no types
def _progress(terminal: Native, userdata: Native, report: Native) -> None:
    sink: EngineCallbacks = ffi.from_handle(userdata)
    event = TerminalProgress(_PROGRESS[min(report.state, 4)], None if report.progress < 0 else int(report.progress))
    if sink.events and isinstance(sink.events[-1], TerminalProgress):
        sink.events[-1] = event
    else:
        sink.add(event)


_CALLBACKS = (
    (lib.GHOSTTY_TERMINAL_OPT_WRITE_PTY, _write_pty),
    (lib.GHOSTTY_TERMINAL_OPT_BELL, _bell),
    (lib.GHOSTTY_TERMINAL_OPT_TITLE_CHANGED, _title_changed),
    (lib.GHOSTTY_TERMINAL_OPT_PWD_CHANGED, _pwd_changed),
    (lib.GHOSTTY_TERMINAL_OPT_SIZE, _size),
    (lib.GHOSTTY_TERMINAL_OPT_XTVERSION, _xtversion),
    (lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE, _clipboard_write),
    (lib.GHOSTTY_TERMINAL_OPT_DESKTOP_NOTIFICATION, _notification),
    (lib.GHOSTTY_TERMINAL_OPT_PROGRESS_REPORT, _progress),
)
