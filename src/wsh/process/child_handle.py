"""A child as the server holds it: output rings, input, size, and how it ended."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import termios
from collections.abc import Callable
from typing import TYPE_CHECKING

from wsh.process.keeper.start.wrapper import find_wrapped
from wsh.process.ring import Ring
from wsh.process.spec import ExitStatus
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.process.keeper_client import KeeperClient


class InputClosed(Exception):
    """The child does not take input any more."""


class ChildHandle:
    """One child of the keeper. A terminal has `ring`; a child on pipes has `ring` (stdout) and `error_ring` (stderr).

    `exited` is set once the leader is dead and everything it printed is in the ring; its `offset` says up to where.
    """

    def __init__(self, keeper: KeeperClient, facts: JsonObject, rings: list[Ring], input_fd: int) -> None:
        self._keeper = keeper
        self.id: int = facts["id"]
        self.pid: int = facts["pid"]
        self.wrapped: bool = facts.get("wrapped", False)
        self.is_terminal: bool = facts["terminal"]
        self.started_us: int = facts["started_us"]
        self.rings = rings
        self.ring = rings[0]
        self.slot = self.ring.slot
        self.exited: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self.on_output: Callable[[], None] | None = None  # if set, called for news of this child instead of `on_dirty`
        self._input_fd = input_fd
        self._writable: asyncio.Future[None] | None = None
        self._write_turn = asyncio.Lock()
        if facts["status"] is not None:
            self.set_exit(facts["status"])

    def find_program(self) -> int:
        """The pid of the program that was asked for: the leader's, or that of what a wrapper has started by now."""
        return find_wrapped(self.pid) if self.wrapped else self.pid

    @property
    def meta(self) -> JsonObject:
        """What a server left at the keeper for its successor. Read where the keeper has it: a copy here would be a kilobyte for each child."""
        found: JsonObject = json.loads(self.ring.read_meta() or b"{}")
        return found

    @property
    def error_ring(self) -> Ring:
        return self.rings[1]

    @property
    def running(self) -> bool:
        return not self.exited.done()

    @property
    def fd(self) -> int:
        """The terminal (for ioctls), or the pipe to stdin; -1 if there is none."""
        return self._input_fd

    def set_exit(self, status: int) -> None:
        if not self.exited.done():
            self.exited.set_result(ExitStatus.from_wait(status, self.ring.head))

    # input

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write what fits now and return how much that was; 0 if the child does not read. Raises InputClosed."""
        if self._input_fd < 0:
            raise InputClosed
        try:
            return os.write(self._input_fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            raise InputClosed from None

    async def write_all(self, data: bytes) -> None:
        """Write everything, in one piece with respect to other callers, waiting while the child does not read."""
        async with self._write_turn:
            view = memoryview(data)
            while view:
                count = self.write(view)
                view = view[count:]
                if view and not count:
                    await self.wait_until_writable()

    async def wait_until_writable(self) -> None:
        """Returns when some input can be written, or the input is gone (then `write` says so)."""
        if self._input_fd < 0:
            return
        loop = asyncio.get_running_loop()
        if self._writable is None or self._writable.done():
            future = self._writable = loop.create_future()
            fd = self._input_fd
            loop.add_writer(fd, _resolve, future)
            future.add_done_callback(lambda _: loop.remove_writer(fd))
        try:
            await asyncio.shield(self._writable)
        except asyncio.CancelledError:
            self._writable.cancel()
            raise

    def close_input(self) -> None:
        """End of input for a child on pipes; for a terminal, give up our descriptor."""
        if self._input_fd >= 0:
            if self._writable is not None and not self._writable.done():
                self._writable.set_result(None)
                asyncio.get_running_loop().remove_writer(self._input_fd)
            os.close(self._input_fd)
            self._input_fd = -1

    # the terminal

    def resize(self, rows: int, cols: int, offset: int | None = None) -> None:
        """Set the terminal's size now. `offset` is how far the caller had parsed; a replay resizes at that point."""
        if self._input_fd < 0:
            return
        try:
            fcntl.ioctl(self._input_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        except OSError:
            return
        at = self.ring.tail if offset is None else offset
        self._keeper.note_resize(self, rows, cols, at)

    def release(self) -> None:
        """Give up mappings and descriptors. The child itself is not touched."""
        self.close_input()
        for ring in self.rings:
            ring.close()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
