"""Reading what programs print: the last words of a leader whose output others hold open."""

from __future__ import annotations

import os

import pytest

from tests.support.waiting import HANG_S
from wsh.process.keeper.child import Child
from wsh.process.keeper.loop import Loop
from wsh.process.keeper.output.stream import StreamPump


@pytest.mark.parametrize("pieces", [[65_536], [65_536 - 100], [65_536 - 4096], [4096] * 16, [10]])
def test_an_exit_is_announced_whatever_the_size_of_the_last_words(pieces: list[int]) -> None:
    """Another process holds the pipe open, so that no end of file comes; and an empty pipe makes no event."""
    loop = Loop()
    pump = StreamPump(loop)
    announced: list[Child] = []

    def announce(child: Child) -> None:
        announced.append(child)
        loop.stop()

    child = Child(1, False, announce)
    child.ready = True
    stream = pump.make(child, 262_144)
    child.streams.append(stream)
    source, held_open = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        pump.attached = True
        pump.add(stream, source)
        for size in pieces:
            assert os.write(held_open, b"x" * size) == size
        child.die(0, pump)
        if not announced:
            loop.after(HANG_S, loop.stop)
            loop.run()
        assert announced == [child] and stream.head == sum(pieces)
    finally:
        pump.close_source(stream)
        pump.unmake(stream)
        os.close(held_open)
        pump.control.close()
        os.close(pump._bell_in)
        loop.epoll.close()
