"""Bytes in, screen out: libghostty behind one small class.

Knows no event loop, no file, no clock and no process. `terminal.py` has the class; the other modules are its parts
(`native` the C library, `row` and `style` reading, `number` line numbers, `sink` what the program asked and said,
`replay` and `snapshot` the whole state as bytes) and the encoders of input (`key`, `mouse`, `paste`).
"""

from wsh.terminal.buffer import SharedBuffer, buffer_of
from wsh.terminal.event import (
    AltScreen,
    Bell,
    ClipboardWrite,
    CwdChanged,
    Notification,
    Progress,
    TerminalEvent,
    TitleChanged,
)
from wsh.terminal.key import encode_key, encode_keys, parse_keys
from wsh.terminal.limit import TerminalLimits
from wsh.terminal.mouse import encode_mouse
from wsh.terminal.paste import encode_paste
from wsh.terminal.screen import (
    Cursor,
    Line,
    Match,
    Modes,
    RowChanges,
    Screen,
    ScreenMode,
    ScrollbackPage,
    Span,
    StyledLine,
)
from wsh.terminal.terminal import Terminal

__all__ = [
    "AltScreen",
    "Bell",
    "ClipboardWrite",
    "Cursor",
    "CwdChanged",
    "Line",
    "Match",
    "Modes",
    "Notification",
    "Progress",
    "RowChanges",
    "Screen",
    "ScreenMode",
    "ScrollbackPage",
    "SharedBuffer",
    "Span",
    "StyledLine",
    "Terminal",
    "TerminalEvent",
    "TerminalLimits",
    "TitleChanged",
    "buffer_of",
    "encode_key",
    "encode_keys",
    "encode_mouse",
    "encode_paste",
    "parse_keys",
]
