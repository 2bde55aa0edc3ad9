"""The terminal, lent to a server on this machine: it reads the keys and writes the pictures while we sleep.

Either we or the server have the terminal, never both. A server that can borrow says so (`lendable`), one of an earlier version does not. From `lend` until
`returned` we do not read, and write only what comes before `lent`, which we answer when it is written (`drawn`). The server gives it back by itself for the prefix and for whatever else is not plainly typed, and before
the end of the viewing. We take it back when we need it. Should keys stay unread, because the server hangs, we take them all the same.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import termios
import time
from typing import TYPE_CHECKING, Literal

from wsh.client import tty
from wsh.client.ws_client import WsClient, WsLost
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.client.attach.person import Person

_READ_WITHIN_S = 0.25
"""A server reads keys within so long."""
_ANSWERS_S = 0.25
"""So long we wait for the terminal before we go on without an answer."""
_CANCEL = b"\x18"
"""Ends a sequence that a server has written in part."""
_PLAIN = re.compile(rb"[^\x1b]+", re.DOTALL)


class Lending:
    """Of one connection. `deadline` is when `look` wants to be called, by the monotonic clock."""

    def __init__(self, line: WsClient, person: Person) -> None:
        self._line = line
        self._person = person
        self._device = _find_device()
        self._state: Literal["ours", "lent", "asked"] = "ours"
        self._is_offered = False
        self._is_answered = True
        """Whether every `lend` has been answered with `returned`, which comes once, asked for or not."""
        self.deadline: float | None = None

    @property
    def reads_keys(self) -> bool:
        """Whether keys are ours to read."""
        return self._state == "ours"

    @property
    def is_watching(self) -> bool:
        """Whether we want to know of keys: to read them, or to see that the server does."""
        return self._state == "ours" or self._state == "lent" and self.deadline is None

    def hear(self, said: JsonObject) -> bool:
        """What the server says about it; False if it speaks of other things."""
        match said.get("type"):
            case "lendable":
                self._is_offered = self._device is not None and self._person.has_prefix
                self._lend()
            case "lent":
                self._line.send_json({"type": "drawn"})
            case "returned":
                self._state, self.deadline, self._is_answered = "ours", None, True
                if said.get("refused"):
                    self._is_offered = False
                keys = str(said.get("keys", "")).encode("latin-1")
                if keys:
                    self._person.type(keys)
            case _:
                return False
        return True

    def follow(self, keys: bytes = b"") -> None:
        """Lend it after plain `keys` that we read ourselves; take it back where the person's next key is ours."""
        if keys and _PLAIN.fullmatch(keys):
            self._lend()
        elif self._state == "lent" and not self._person.types_plainly:
            self._take_back()

    def _lend(self) -> None:
        if self._is_offered and self._is_answered and self._state == "ours" and self._person.types_plainly:
            self._state, self._is_answered = "lent", False
            self._line.send_json({"type": "lend", "device": self._device})

    def _take_back(self) -> None:
        self._state, self.deadline = "asked", time.monotonic() + _ANSWERS_S
        self._line.send_json({"type": "take_back"})

    def note_key(self) -> None:
        """A key was pressed that the server is to read: we shall see whether it does."""
        self.deadline = time.monotonic() + _READ_WITHIN_S

    def look(self) -> None:
        """The deadline is over."""
        self.deadline = None
        if self._state == "asked":
            self._state = "ours"  # it hangs; the answer may come later
        elif self._state == "lent" and _count_unread():
            self._take_back()

    def end(self) -> None:
        """Take the terminal back before the viewer ends. On return the server has drawn what was under way, and writes no more."""
        if self._state == "ours" and self._is_answered:
            return
        try:
            if self._state == "lent":
                self._take_back()
            end = time.monotonic() + _ANSWERS_S
            while not self._is_answered and (left := end - time.monotonic()) > 0:
                if select.select([self._line], [], [], left)[0]:
                    self._hear_last()
        except WsLost:
            pass
        if not self._is_answered:
            tty.write_all(1, _CANCEL)

    def _hear_last(self) -> None:
        import json

        for kind, payload in self._line.receive():
            if kind == "bytes":
                tty.write_all(1, payload)
            elif kind == "text":
                self.hear(json.loads(payload))  # keys that come back were typed before we go


def _find_device() -> int | None:
    """The number of the terminal, if keys and pictures have the same one."""
    try:
        keys, pictures = os.fstat(0), os.fstat(1)
    except OSError:
        return None
    return keys.st_rdev if keys.st_rdev == pictures.st_rdev and os.isatty(0) else None


def _count_unread() -> int:
    """Typed bytes that are still unread; 1 if the terminal is gone."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, bytes(4)))[0])
    except OSError:
        return 1
