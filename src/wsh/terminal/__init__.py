"""Bytes in, screen out: libghostty behind one small class.

Knows no event loop, no file, no clock and no process. `terminal.py` has the class; the other modules are its parts
(`native` the C library, `row` and `style` reading, `number` line numbers, `sink` what the program asked and said,
`replay` and `snapshot` the whole state as bytes) and the encoders of input (`key`, `mouse`, `paste`).
"""

from wsh.terminal.engine.buffer import SharedBuffer, buffer_of
from wsh.terminal.engine.limit import TerminalLimits
from wsh.terminal.event import (
    AltScreen,
    ClipboardWrite,
    TerminalBell,
    TerminalCwdChanged,
    TerminalEvent,
    TerminalNotification,
    TerminalProgress,
    TerminalTitleChanged,
)
from wsh.terminal.input.key import encode_key, encode_keys, parse_keys
from wsh.terminal.input.mouse import encode_mouse
from wsh.terminal.input.paste_encoder import encode_paste
from wsh.terminal.screen import (
    Line,
    Match,
    ScreenMode,
    ScrollbackPage,
    Span,
    StyledLine,
    TerminalCursor,
    TerminalModes,
    TerminalScreen,
)
from wsh.terminal.terminal import Terminal

__all__ = [
    "AltScreen",
    "ClipboardWrite",
    "Line",
    "Match",
    "ScreenMode",
    "ScrollbackPage",
    "SharedBuffer",
    "Span",
    "StyledLine",
    "Terminal",
    "TerminalBell",
    "TerminalCursor",
    "TerminalCwdChanged",
    "TerminalEvent",
    "TerminalLimits",
    "TerminalModes",
    "TerminalNotification",
    "TerminalProgress",
    "TerminalScreen",
    "TerminalTitleChanged",
    "buffer_of",
    "encode_key",
    "encode_keys",
    "encode_mouse",
    "encode_paste",
    "parse_keys",
]
