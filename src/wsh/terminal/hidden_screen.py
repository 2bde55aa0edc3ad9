"""The normal screen while the alternate one shows.

The library gives no way to read the screen that does not show, so a copy of the terminal is made and switched back. What
is beneath cannot change before the program switches, or the size changes, so the copy may be kept until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wsh.terminal.engine import native
from wsh.terminal.snapshot import copy_of
from wsh.wire.error import SnapshotNotPossible

if TYPE_CHECKING:
    from wsh.terminal.terminal import Terminal

CANCEL = b"\x18"


def alternate_mode(terminal: Terminal) -> int:
    """The mode by which the program went to the alternate screen: it decides what leaving restores."""
    return next((number for number in (1049, 1047, 47) if native.get_mode(terminal.handle, number)), 1049)


def open_hidden_screen(terminal: Terminal) -> Terminal | None:
    """A terminal that shows the normal screen under the alternate one; nothing inside of a very long sequence."""
    try:
        copy = copy_of(terminal, history=True)
    except SnapshotNotPossible:
        return None
    copy.feed(CANCEL + b"\x1b[?%dl" % alternate_mode(terminal))
    if copy.alt:
        copy.close()
        return None
    return copy
