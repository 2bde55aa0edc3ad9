"""Text that is pasted, so that no part of it can be taken for a key.

Inside a bracketed paste the only danger is the text ending the bracket itself; outside of one every control character
acts. Both are made harmless: controls other than tab and line ends become blanks, and the library does the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wsh.terminal.engine.native import check, ffi, lib

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_END = re.compile("(?:\x1b\\[|\x9b)20[01]~")


def encode_paste(text: str | bytes, terminal: Terminal | None = None, *, bracketed: bool | None = None) -> bytes:
    """The bytes for the program; bracketed if it asked for that (or as `bracketed` says)."""
    if bracketed is None:
        bracketed = terminal is not None and terminal.bracketed_paste
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = text.replace("\r\n", "\n")
    # whole brackets vanish rather than leave "[201~" behind; again, since removing one may join another
    while (cleaned := _END.sub("", text)) != text:
        text = cleaned
    raw = bytearray(_CONTROLS.sub(" ", text).encode("utf-8", "replace"))
    if not raw:
        return b""
    out = ffi.new("char[]", len(raw) + 64)
    length = ffi.new("size_t*")
    with ffi.from_buffer("char[]", raw, require_writable=True) as source:
        check(lib.ghostty_paste_encode(source, len(raw), bracketed, out, len(out), length), "paste_encode")
    return bytes(ffi.buffer(out, length[0]))
