"""The keeper's side of the counters that one server sees, and of the two bells."""

from __future__ import annotations

import _thread
import mmap
import os

from wsh.process.keeper import layout

_barrier = _thread.allocate_lock()


def fence() -> None:
    """Order what we stored before against what we load after."""
    with _barrier:
        pass


class Control:
    """One per server that ever connected: a displaced server goes on writing into its own, where nobody reads."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("wsh-control", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, layout.CONTROL_BYTES)
        self.map = mmap.mmap(self.fd, layout.CONTROL_BYTES)
        self._view = memoryview(self.map)
        self.words = self._view[layout.WORDS_AT :].cast("Q")
        self.to_server = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.to_keeper = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def ring_server(self, slot: int) -> None:
        """Tell the server to look at `slot`. Counters must be stored before."""
        shared = self.map
        shared[layout.TO_SERVER_MAP + slot] = 1
        if layout.ORDERED:
            with _barrier:
                pass
            if shared[layout.TO_SERVER_RUNG]:
                return
            shared[layout.TO_SERVER_RUNG] = 1
        os.eventfd_write(self.to_server, 1)

    def take_dirty(self, slots: int) -> list[int]:
        """Slots below `slots` that the server wants looked at; called when `to_keeper` is readable."""
        try:
            os.eventfd_read(self.to_keeper)
        except BlockingIOError:
            pass
        shared = self.map
        shared[layout.TO_KEEPER_RUNG] = 0
        fence()
        found = []
        end = layout.TO_KEEPER_MAP + slots
        at = shared.find(b"\x01", layout.TO_KEEPER_MAP, end)
        while at >= 0:
            shared[at] = 0
            found.append(at - layout.TO_KEEPER_MAP)
            at = shared.find(b"\x01", at + 1, end)
        fence()
        return found

    def copy_from(self, old: Control, slots: int) -> None:
        count = slots * layout.WORDS_PER_SLOT
        self.words[:count] = old.words[:count]

    def close(self) -> None:
        """Close the descriptors. The mapping goes with the last reference: the journal's thread may hold one."""
        for fd in (self.fd, self.to_server, self.to_keeper):
            os.close(fd)
