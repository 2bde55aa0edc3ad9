"""Shells inside of shells: the log of the one that wsh started, that of the innermost one which tells, and what hides their secrets.

A shell inside introduces itself with a nonce of its own while a command of the outer one runs, and is left when that command ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wsh.session.command.command import CommandEvent, CommandLog, MarkPlace
from wsh.session.shell.mark import LONGEST_INTRODUCTION, NonceMask, find_introduction
from wsh.terminal import Terminal

_MOST_INNER = 16
"""Nonces of shells inside that are remembered."""


class Shells:
    def __init__(self, root: CommandLog, on_met: Callable[[], None]) -> None:
        """`on_met` is called when there is another nonce to remember."""
        self.root = root
        """The log of the shell that wsh started."""
        self.innermost = root
        self.inner_nonces: list[str] = []
        self._on_met = on_met
        self._masks = [NonceMask(root.nonce)]
        self._tail = b""
        """The newest bytes of a running command, in case a shell inside introduces itself across two reads."""

    @property
    def nonces(self) -> tuple[str, ...]:
        """The secrets in their marks; they must not leave by any door."""
        return (self.root.nonce, *self.inner_nonces)

    def recall(self, inner_nonces: Iterable[str]) -> None:
        """Take back the nonces of shells inside, in a restore."""
        self.inner_nonces = list(inner_nonces)
        self._masks = [NonceMask(nonce) for nonce in self.nonces]

    def consume(
        self, start: int, data: bytes, shown: bytes, terminal: Terminal, *, live: bool
    ) -> tuple[bytes, list[CommandEvent]]:
        """Feed `shown` to the terminal, stopping at each mark to see where the screen stands there.

        `shown` is `data` without what the engine cannot parse; marks are read from `data`, so that they hold all the same.
        Returns what may be shown of the bytes, and what the marks told.
        """
        root = self.root
        met = self._meet(data) if root.phase == "running" else None
        for mask in self._masks:
            shown = mask.hide(shown)
        view = memoryview(shown)

        def feed(first: int, last: int) -> None:
            terminal.feed(view[first - start : last - start])

        def place() -> MarkPlace:
            return MarkPlace(terminal.rows, terminal.cols, terminal.epoch, terminal.cursor_line, terminal.cursor.col)

        told = root.consume(start, data, shown, feed, place, live=live)
        if self.innermost is not root:
            first = met or 0
            told += self.innermost.consume(
                start + first, data[first:], shown[first:], lambda _a, _b: None, place, live=live
            )
            if root.current is None:
                told += self._leave(start)
        return shown, told

    def _meet(self, data: bytes) -> int | None:
        """A shell inside of the running command begins to tell: where in `data` its introduction ends."""
        before = self._tail
        self._tail = data[-LONGEST_INTRODUCTION:]
        if (b"\x1b" not in data or b"133;I" not in data) and b"133;I" not in before + data[:LONGEST_INTRODUCTION]:
            return None
        met = find_introduction(before + data)
        if met is None or met[0] in self.nonces:
            return None
        nonce, shell, end = met
        self.root.go_on_after(self.innermost)
        self.innermost = self.root.nest(nonce, shell)
        self.recall([*self.inner_nonces[1 - _MOST_INNER :], nonce])
        self._on_met()
        return max(0, end - len(before))

    def _leave(self, offset: int) -> list[CommandEvent]:
        inner, self.innermost = self.innermost, self.root
        ended = [command for command in self.root if command.end is not None]
        told = inner.shell_exited((ended[-1].exit_code if ended else None) or 0, offset)
        self.root.go_on_after(inner)
        return told
