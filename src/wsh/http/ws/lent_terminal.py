"""The terminal of a viewer on this machine, lent to the server: it reads the keys and writes the pictures itself, and the viewer sleeps.

A viewer can only lend what is its own: the terminal is opened where /proc shows it for the process that connected, and must be that
process's controlling terminal with the process in the foreground. Both are asked again before every read and every write, so a viewer that was
stopped, put into the background or killed has its terminal back from that moment on. Opening it anew gives descriptor flags of our own. Whatever is not plainly typed goes back to the
viewer together with the terminal.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable

_KEYS_BYTES = 4096
_GONE = (b"T", b"t", b"Z", b"X", b"x")
"""States of a process that is stopped or dead."""


class NotLendable(Exception):
    """This cannot be borrowed; the viewer goes on by itself."""


def plain_keys(prefix: str) -> re.Pattern[bytes] | None:
    """What a viewer with that prefix passes on unseen: text, control characters and arrows, but not the prefix; None if that cannot be told."""
    control, _, character = prefix.partition("+")
    if control.lower() != "ctrl" or len(character) != 1 or not character.isascii():
        return None
    literal = bytes((ord(character.upper()) & 0x1F,))
    return re.compile(rb"(?:[^\x1b%s]|\x1b[\[O][ABCDFH])+" % re.escape(literal), re.DOTALL)


class LentTerminal:
    """Borrowed from `LentTerminal(...)` until `close`. `on_keys` gets what was plainly typed, `on_end` other keys once it must go back."""

    def __init__(
        self,
        pid: int,
        device: int,
        plain: re.Pattern[bytes],
        on_keys: Callable[[bytes], None],
        on_end: Callable[[bytes], None],
    ) -> None:
        """Raises NotLendable unless `device` is the terminal of process `pid`, which has it in the foreground."""
        self._plain = plain
        self._on_keys = on_keys
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._may_write = False
        self._device = b"%d" % _as_shown(device)
        self._fd = self._stat_fd = -1
        try:
            self._open(pid, device)
        except OSError as problem:
            self.close()
            raise NotLendable(str(problem)) from None
        if not self.is_held():
            self.close()
            raise NotLendable("the viewer does not have it in the foreground")
        self._loop.add_reader(self._fd, self._read)

    def _open(self, pid: int, device: int) -> None:
        if _own_terminal() == self._device:  # begun there with `&`: reading would stop us
            raise OSError("it is the server's own terminal as well")
        folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._stat_fd = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
            for name in ("fd/0", "fd/1"):
                found = os.stat(name, dir_fd=folder)
                if not stat.S_ISCHR(found.st_mode) or found.st_rdev != device:
                    raise OSError("it is not the terminal of the viewer")
            self._fd = os.open("fd/0", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            if not os.isatty(self._fd) or os.fstat(self._fd).st_rdev != device:
                raise OSError("it is not a terminal")
        finally:
            os.close(folder)

    def is_held(self) -> bool:
        """Whether the viewer is alive, not stopped, and in the foreground of this terminal: only then is it the viewer's to lend."""
        try:
            told = os.pread(self._stat_fd, 512, 0)
        except OSError:
            return False
        state, _, group, _, terminal, foreground, *_ = _fields(told)
        return state not in _GONE and group == foreground and terminal == self._device

    @property
    def buffered(self) -> int:
        """Bytes that the terminal has not taken yet."""
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        """Write what the terminal takes now; the rest follows when it can."""
        if self._unsent or not self._may_write:
            self._unsent += data
            return
        try:
            count = os.write(self._fd, data)
        except OSError:  # full, or hung up: then the viewer finds out as well
            count = 0
        if count < len(data):
            self._unsent += data[count:]
            self._loop.add_writer(self._fd, self._write_rest)

    def begin(self) -> None:
        """The viewer has written all that we sent it before: what we write from now on comes behind that."""
        if not self._may_write:
            self._may_write = True
            if self._unsent:
                self._loop.add_writer(self._fd, self._write_rest)

    def _write_rest(self) -> None:
        if not self.is_held():
            self._on_end(b"")
            return
        try:
            del self._unsent[: os.write(self._fd, self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._on_end(b"")
            return
        if not self._unsent:
            self._loop.remove_writer(self._fd)

    def _read(self) -> None:
        keys = b""
        if self.is_held():
            try:
                keys = os.read(self._fd, _KEYS_BYTES)
            except BlockingIOError:
                return
            except OSError:
                pass
        if keys and self._plain.fullmatch(keys):
            self._on_keys(keys)
        else:
            self._on_end(keys)

    def close(self) -> bytes:
        """Never read or write it again. Returns what is still to be written. Idempotent."""
        fds, self._fd, self._stat_fd = (self._fd, self._stat_fd), -1, -1
        if fds[0] >= 0:
            self._loop.remove_reader(fds[0])
            self._loop.remove_writer(fds[0])
        for fd in fds:
            if fd >= 0:
                os.close(fd)
        rest = bytes(self._unsent)
        self._unsent.clear()
        return rest


def _fields(told: bytes) -> list[bytes]:
    """The first of what /proc/PID/stat tells behind the name of the program, which may have any characters."""
    return told[told.rfind(b")") + 2 :].split(b" ", 6)


def _own_terminal() -> bytes:
    """The number of this process's controlling terminal, as /proc shows it."""
    with open("/proc/self/stat", "rb", buffering=0) as file:
        return _fields(file.read(512))[4]


def _as_shown(device: int) -> int:
    """The number that /proc/PID/stat shows for a terminal."""
    major, minor = os.major(device), os.minor(device)
    return minor & 0xFF | major << 8 | (minor & ~0xFF) << 12
