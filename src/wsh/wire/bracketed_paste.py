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


class PasteInPieces:
    """A paste that arrives in several reads, each of which may end anywhere, also within the mark at its end."""

    def __init__(self) -> None:
        self.is_open = False
        """Whether what comes next is pasted."""
        self._held = b""

    def open(self) -> None:
        """The mark at the beginning was read."""
        self.is_open, self._held = True, b""

    def close(self) -> None:
        self.is_open, self._held = False, b""

    def read(self, data: bytes, at: int) -> PastedPart:
        """As `read_pasted`; `text` leaves out what may be the beginning of the mark, and has it next time if it was none."""
        whole = self._held + data[at:]
        found = whole.find(PASTE_END)
        if found >= 0:
            end = at + found + len(PASTE_END) - len(self._held)
            self.close()
            return PastedPart(whole[:found], end, False)
        begun = next((n for n in range(len(PASTE_END) - 1, 0, -1) if whole.endswith(PASTE_END[:n])), 0)
        self._held = whole[len(whole) - begun :]
        return PastedPart(whole[: len(whole) - begun], len(data), True)


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
