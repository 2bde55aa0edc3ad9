"""Put on PYTHONPATH, this makes the terminal engine of that process mortal in known ways.

The real engine's bugs come and go with its versions. Here a terminal that was fed one of these words dies of, or never
comes back from, the visit that the word names. Whether a terminal is poisoned follows from what it was fed, as it would
with a real bug.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

LATE = True
WORDS = (
    b"DEADLY", b"ENDLESS", b"NO-SNAPSHOT", b"NO-RESTORE", b"NO-RESIZE", b"NO-READ", b"NO-RENDER", b"REFUSED", b"NO-CHILD", b"STUBBORN",
)  # fmt: skip
LEAVE_ALTERNATE = b"\x18\x1b[?1049l\x1b[?1047l\x1b[?47l"
"""What a terminal is fed at the end that renders output as text, and no other."""
MAIN = os.getpid()


class Deadly:
    """The library, with some of its functions replaced."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._lib = native.lib
        self._poison: dict[int, set[bytes]] = {}
        self._tail: dict[int, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._lib, name)
        setattr(self, name, found)
        return found

    def _key(self, terminal: Any) -> int:
        return int(self._native.ffi.cast("intptr_t", terminal))

    def _is(self, terminal: Any, word: bytes) -> bool:
        return word in self._poison.get(self._key(terminal), ())

    def ghostty_terminal_free(self, terminal: Any) -> None:
        self._poison.pop(self._key(terminal), None)
        self._tail.pop(self._key(terminal), None)
        self._lib.ghostty_terminal_free(terminal)

    def ghostty_terminal_vt_write(self, terminal: Any, data: Any, size: int) -> None:
        key = self._key(terminal)
        seen = self._tail.get(key, b"") + bytes(self._native.ffi.buffer(data, size))
        self._tail[key] = seen[-32:]
        found = {word for word in WORDS if word in seen}
        if b"DEADLY" in found:
            die()
        if b"NO-CHILD" in found and os.getpid() != MAIN:
            die()  # though the server lives with it
        if b"STUBBORN" in found and os.getpid() == MAIN:
            die()  # though no child ever dies of it
        while b"ENDLESS" in found:
            pass
        if self._is(terminal, b"NO-RENDER") and seen.endswith(LEAVE_ALTERNATE):
            die()
        if found:
            self._poison.setdefault(key, set()).update(found)
        self._lib.ghostty_terminal_vt_write(terminal, data, size)

    def ghostty_snapshot_encode_alloc(self, terminal: Any, *rest: Any) -> Any:
        if self._is(terminal, b"NO-SNAPSHOT"):
            die()
        return self._lib.ghostty_snapshot_encode_alloc(terminal, *rest)

    def ghostty_snapshot_decoder_new_buf(self, allocator: Any, out: Any, data: Any, size: int) -> Any:
        if b"NO-RESTORE" in bytes(self._native.ffi.buffer(data, size)):
            die()
        return self._lib.ghostty_snapshot_decoder_new_buf(allocator, out, data, size)

    def ghostty_terminal_resize(self, terminal: Any, *rest: Any) -> Any:
        if self._is(terminal, b"NO-RESIZE"):
            die()
        return self._lib.ghostty_terminal_resize(terminal, *rest)

    def ghostty_render_state_update(self, state: Any, terminal: Any) -> Any:
        if self._is(terminal, b"NO-READ"):
            die()
        if self._is(terminal, b"REFUSED"):
            return -2
        return self._lib.ghostty_render_state_update(state, terminal)


def die() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)
    signal.pause()


from wsh.terminal.engine import native  # noqa: E402

deadly = Deadly(native)
for name, module in list(sys.modules.items()):
    if name.startswith("wsh.terminal.") and hasattr(module, "lib"):
        setattr(module, "lib", deadly)  # noqa: B010
