"""What a WebSocket client gets that reads more slowly than its session prints: the one policy of every socket.

What can be made anew (output, events, pictures) is skipped while the client is behind, and made anew once it has caught up: a replay on a
raw socket, `lagged` and `sync` for a subscription, a whole picture for a viewer. So nothing arrives late, and no program waits for its
readers. What cannot be made anew (answers, news of the list of sessions) is kept; a client that leaves twice as much unread is disconnected.
A session of another machine is skipped over there: here its sender is made to wait until the client can take more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wsh.http.ws.lent_terminal import LentTerminal
from wsh.http.ws.sender import WsSender
from wsh.wire.setting import Settings

CAUGHT_UP_BYTES = 64 * 1024
"""A client with at most this much unread keeps up again."""
PICTURE_BYTES = CAUGHT_UP_BYTES
"""A viewer with more than this unread gets no further picture: each one replaces those before it."""
_LOOK_S = 0.05


def get_allowance(settings: Settings) -> int:
    """How many bytes a client may leave unread before it is behind."""
    return settings.get_int("server.client_buffer_bytes")


def has_room_for_picture(sender: WsSender | LentTerminal) -> bool:
    return sender.buffered <= PICTURE_BYTES


def dismiss_if_unread(sender: WsSender, allowance: int, waiting_bytes: int = 0) -> None:
    """Disconnect a client that does not read its answers; `waiting_bytes` wait beside those that its socket holds."""
    if sender.buffered + waiting_bytes > 2 * allowance:
        sender.close_soon(1013, "the client does not read")


class SlowConsumer:
    """One client's stream. It is skipped from `allowance` unread bytes on; `start_anew` makes it whole again.

    `start_anew(skipped)` is given how much was skipped; if it returns False, it is called again a moment later.
    """

    def __init__(self, sender: WsSender, allowance: int, start_anew: Callable[[int], bool]) -> None:
        self._sender = sender
        self._allowance = allowance
        self._start_anew = start_anew
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._skipped = 0
        self.is_behind = False

    def send(self, *parts: bytes, count: int = 1) -> bool:
        """Write whole frames, which are `count` messages. False if they were skipped."""
        if not self.is_behind and self._sender.buffered <= self._allowance:
            self._sender.write(*parts)
            return True
        self._skipped += count
        self.is_behind = True
        self._look_later()
        return False

    def start(self) -> None:
        """Begin with `start_anew`, now or as soon as it can."""
        self.is_behind = True
        self.look()

    def look(self) -> None:
        """Start anew if the client has caught up."""
        if not self.is_behind or not self._sender.is_open:
            return
        if self._sender.buffered <= CAUGHT_UP_BYTES and self._start_anew(self._skipped):
            self.is_behind, self._skipped = False, 0
        else:
            self._look_later()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_S, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.look()
