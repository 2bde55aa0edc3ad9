"""A child as the keeper remembers it, from spawn until the server forgets it."""

from __future__ import annotations

from wsh.process.keeper.output.stream import ChildStream, StreamPump
from wsh.process.keeper.start.wrapper import find_wrapped

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

    from wsh.wire.json.object import JsonObject


class Child:
    """`status` is the leader's wait status once it is dead; `announced` once what it printed has been drained too."""

    __slots__ = (
        "announce",
        "announced",
        "dies_with_server",
        "forgotten",
        "id",
        "is_terminal",
        "pid",
        "ready",
        "started_us",
        "status",
        "stdin_fd",
        "streams",
        "wrapped",
    )

    def __init__(self, id: int, is_terminal: bool, announce: Callable[[Child], None]) -> None:
        self.id = id
        self.pid = 0
        self.is_terminal = is_terminal
        self.streams: list[ChildStream] = []
        self.status: int | None = None
        self.ready = False  # the program has been executed and the server told
        self.announced = False
        self.forgotten = False
        self.dies_with_server = False
        self.wrapped = False  # two processes of bubblewrap stand before the program
        self.stdin_fd = -1
        self.started_us = 0
        self.announce = announce

    def find_program(self) -> int:
        """The process that was asked for: the leader, or what a wrapper has started by now."""
        return find_wrapped(self.pid) if self.wrapped else self.pid

    def die(self, status: int, pump: StreamPump) -> None:
        """The leader is dead. Its last words are read before anybody is told."""
        self.status = status
        for stream in self.streams:
            pump.drain(stream)
        self.settle()

    def settle(self) -> None:
        """Announce the exit if everything is in place for that."""
        if self.announced or self.forgotten or not self.ready or self.status is None:
            return
        if all(stream.drained for stream in self.streams):
            self.announced = True
            self.announce(self)

    def describe(self) -> JsonObject:
        """What a server is told about this child, at spawn and at take-over."""
        return {
            "id": self.id,
            "pid": self.pid,
            "terminal": self.is_terminal,
            "slots": [stream.slot for stream in self.streams],
            "status": self.status if self.announced else None,
            "started_us": self.started_us,
            "stdin": self.stdin_fd >= 0,
            "wrapped": self.wrapped,
            "source_open": self.is_terminal and self.streams[0].fd >= 0,
        }
