"""Recognising pasted text in what a terminal sends: it stands between two marks, and no part of it is a key.

Every reader of keys asks here: `wsh attach`, viewers, captured keys, the line that is being typed. The way back, from text to what a program
gets, is `wsh.terminal.input.paste_encoder`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
BEGIN_PATTERN = re.escape(PASTE_BEGIN)
WHOLE_PATTERN = BEGIN_PATTERN + rb".*?(?:" + re.escape(PASTE_END) + rb"|\Z)"
"""A paste as far as it has arrived; for patterns with DOTALL."""


class PastedPart(NamedTuple):
    text: bytes
    end: int
    """Where the next key begins."""
    goes_on: bool
    """The mark at the end has not arrived yet."""


def starts_paste(data: bytes, at: int = 0) -> bool:
    return data.startswith(PASTE_BEGIN, at)


def read_pasted(data: bytes, at: int) -> PastedPart:
    """Pasted text from `at` on, which lies behind the mark at its beginning."""
    end = data.find(PASTE_END, at)
    if end < 0:
        return PastedPart(data[at:], len(data), True)
    return PastedPart(data[at:end], end + len(PASTE_END), False)


def strip_marks(paste: bytes) -> bytes:
    return paste.removeprefix(PASTE_BEGIN).removesuffix(PASTE_END)
