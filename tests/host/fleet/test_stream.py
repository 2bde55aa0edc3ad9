"""A stream between two nodes without NATS: what one end delivers, the other takes."""

from __future__ import annotations

import asyncio

import pytest

from wsh.host.fleet.connection import ConnectionLost
from wsh.host.fleet.receive import _join
from wsh.host.fleet.stream import CreditStream
from wsh.wire.error import HostUnreachable

WINDOW = 1024


def lose(why: str) -> HostUnreachable:
    return HostUnreachable("bob", why)


def open_pair() -> tuple[CreditStream, CreditStream]:
    async def to_far(kind: str, content: bytes) -> None:
        far.take(kind, content)

    async def to_near(kind: str, content: bytes) -> None:
        near.take(kind, content)

    near, far = CreditStream(to_far, WINDOW, lose), CreditStream(to_near, WINDOW, lose)
    return near, far


class EndedSocket:
    """A session's socket that was closed: nothing can be sent, and what it said last was not read yet."""

    def __init__(self, words: list[bytes], *, cut: bool = False) -> None:
        self.closed = (1006, "")
        self._words = words
        self._cut = cut

    async def send(self, message: str | bytes) -> None:
        raise lose("the connection was cut")

    async def receive(self) -> str | bytes | None:
        await asyncio.sleep(0)
        if self._words:
            return self._words.pop(0)
        if self._cut:
            raise lose("the connection was cut")
        self.closed = (1000, "the program ended")
        return None

    async def aclose(self) -> None:
        pass


async def read_all(stream: CreditStream) -> list[str | bytes]:
    got = []
    while (message := await stream.receive()) is not None:
        got.append(message)
    return got


async def test_a_key_that_comes_too_late_does_not_cost_the_last_words() -> None:
    near, far = open_pair()
    words = [b"%d" % number + b"x" * 500 for number in range(20)]
    await near.send("a key")
    joining = asyncio.ensure_future(_join(far, EndedSocket(list(words)), lambda: False))
    assert await read_all(near) == words
    assert near.closed == (1000, "the program ended")
    await joining


async def test_a_socket_that_is_cut_at_the_other_node_is_told_after_the_last_words() -> None:
    near, far = open_pair()
    joining = asyncio.ensure_future(_join(far, EndedSocket([b"last"], cut=True), lambda: False))
    assert await near.receive() == b"last"
    with pytest.raises(HostUnreachable, match="the connection was cut"):
        await near.receive()
    await joining


async def test_what_came_before_a_cut_is_given_before_the_cut_is_told() -> None:
    async def gone(kind: str, content: bytes) -> None:
        raise ConnectionLost("NATS is gone")

    stream = CreditStream(gone, WINDOW, lose)
    for number in (1, 2):
        stream.take("data", number.to_bytes(8, "big") + b"b" + b"x" * WINDOW)
    assert await stream.receive() == b"x" * WINDOW
    assert await stream.receive() == b"x" * WINDOW
    with pytest.raises(HostUnreachable, match="NATS is gone"):
        await stream.receive()
