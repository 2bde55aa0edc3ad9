"""One policy for clients that read slowly: skip what can be made anew, start anew, disconnect those that never read."""

from __future__ import annotations

from typing import Any, cast

from tests.support.waiting import until
from wsh.http.ws.slow_consumer import (
    CAUGHT_UP_BYTES,
    PICTURE_BYTES,
    SlowConsumer,
    dismiss_if_unread,
    has_room_for_picture,
)

ALLOWANCE = 1 << 20


class SlowSocket:
    def __init__(self) -> None:
        self.buffered = 0
        self.is_open = True
        self.written: list[bytes] = []
        self.closed: list[int] = []

    def write(self, frames: bytes) -> None:
        self.written.append(frames)

    def close_soon(self, code: int, reason: str) -> None:
        self.closed.append(code)


async def test_what_a_slow_client_misses_is_skipped_and_then_made_anew_once() -> None:
    socket = SlowSocket()
    ready = False
    started: list[int] = []

    def start_anew(skipped: int) -> bool:
        started.append(skipped)
        return ready

    stream = SlowConsumer(cast(Any, socket), ALLOWANCE, start_anew)
    stream.send(b"one")
    socket.buffered = ALLOWANCE + 1
    stream.send(b"two")
    stream.send(b"three and four", count=2)
    socket.buffered = CAUGHT_UP_BYTES + 1
    stream.send(b"five")
    assert socket.written == [b"one"] and stream.is_behind, "between the two limits it is still behind"
    socket.buffered = CAUGHT_UP_BYTES
    await until(lambda: started, "a first try to start anew")
    assert stream.is_behind, "it was not possible yet"
    ready = True
    await until(lambda: not stream.is_behind, "the stream made whole")
    stream.send(b"six")
    assert set(started) == {4} and socket.written == [b"one", b"six"]
    stream.close()


def test_answers_that_nobody_reads_end_the_connection_and_pictures_stop_early() -> None:
    socket = SlowSocket()
    socket.buffered = 2 * ALLOWANCE
    dismiss_if_unread(cast(Any, socket), ALLOWANCE)
    assert socket.closed == []
    socket.buffered += 1
    dismiss_if_unread(cast(Any, socket), ALLOWANCE)
    assert socket.closed == [1013]
    assert not has_room_for_picture(cast(Any, socket))
    socket.buffered = PICTURE_BYTES
    assert has_room_for_picture(cast(Any, socket))
