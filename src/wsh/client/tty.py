"""This process's own terminal, in raw mode for as long as it is held, and always given back.

Restoring happens on every way out that Python can see: leaving the block, an exception, SIGTERM, SIGHUP. What the server may have switched
on in the emulator (alternate screen, mouse, paste and key modes) is switched off by one fixed sequence, since a server that died cannot. Its
title and its kitty keyboard modes are put on the emulator's own stacks and taken back from there. A terminal on which nothing was drawn gets no byte.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import sys
import termios
import tty

RESTORE = (
    b"\x1b[?2026l\x1b[?1049l\x1b[r\x1b[?6l\x1b[?7h\x1b[?25h\x1b[?1l\x1b>\x1b[?5l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l"
    b"\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[=0;1u\x1b[0 q\x1b]8;;\x1b\\\x1b[0m"
)
_SAVE, _TAKE_BACK = b"\x1b[22;0t\x1b[>0u", b"\x1b[<u\x1b[23;0t"
"""Title and kitty keyboard modes: onto the emulator's stacks, and back from them."""

_PATIENCE_S = 1.0


def is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def size(fd: int = 1) -> tuple[int, int]:
    """(rows, cols) of the terminal, or 24×80 where it does not say."""
    try:
        rows, cols = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))[:2]
    except OSError:
        return 24, 80
    return (rows or 24), (cols or 80)


class Held:
    """What is known of the terminal's screen when it is given back: the shell goes on below `used_rows`."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._before = termios.tcgetattr(fd)
        self.has_screen = False
        """Whether anything was drawn, which is undone then."""
        self.used_rows: int | None = None
        self.status = False
        """Whether its last row is a status line, which goes."""

    def take_screen(self) -> None:
        """Once: what the terminal shows above the cursor goes to its scrollback, before a picture takes its place."""
        if not self.has_screen:
            self.has_screen = True
            write_all(1, _SAVE + b"\r" + b"\n" * (size()[0] - 1))

    def set_raw(self) -> None:
        """In the background this stops us until we are brought to the foreground."""
        while True:
            try:
                tty.setraw(self._fd, termios.TCSADRAIN)
                return
            except termios.error as problem:
                if problem.args[0] != errno.EINTR:
                    raise

    def give_back(self) -> None:
        """The terminal is as it was, and the shell goes on below."""
        if self.has_screen:
            _give_screen_back(self)
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        except (OSError, termios.error):
            pass

    def suspend(self) -> None:
        """Stop, with whatever was started together with us, until the shell brings us to the foreground. Does nothing where no shell could."""
        import signal

        self.give_back()
        self.has_screen = False
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        try:
            os.kill(0, signal.SIGTSTP)
        finally:
            signal.signal(signal.SIGTSTP, before)

    def take_again(self) -> None:
        """After a stop, in which others may have used the terminal: as when it was taken first."""
        self.set_raw()
        if self.has_screen:
            write_all(1, _TAKE_BACK)
            self.has_screen = False


class raw_mode:
    """Keys come one by one and unechoed inside; afterwards the terminal is as it was."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd

    def __enter__(self) -> Held:
        self._held = Held(self._fd)
        try:
            self._held.set_raw()
        except BaseException:
            self._held.give_back()
            raise
        return self._held

    def __exit__(self, *_: object) -> None:
        self._held.give_back()


def _give_screen_back(held: Held) -> None:
    rows = size()[0]
    used = rows - held.status if held.used_rows is None else min(held.used_rows, rows)
    below = b"\x1b[%d;1H\r\n\x1b[J" % used if used else b"\x1b[H\x1b[J"
    try:
        # A terminal that takes nothing any more must not keep us from ending.
        if select.select([], [1], [], _PATIENCE_S)[1]:
            write_all(1, RESTORE + _TAKE_BACK + below)
    except OSError:
        pass


def write_all(fd: int, data: bytes) -> None:
    """Write everything; a terminal set non-blocking by somebody else is waited for."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])
