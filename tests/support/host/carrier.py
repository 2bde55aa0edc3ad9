"""A carrier without a machine behind it: in the state that a test says."""

from __future__ import annotations

from collections.abc import Callable

from wsh.host.carrier import ForwardedAnswer, ForwardedCall, HostState, News, ProgressListener, Stream, StreamRequest
from wsh.wire.error import HostUnreachable


class StillCarrier:
    def __init__(self, state: HostState) -> None:
        self.state = state
        self._listeners: list[Callable[[News], None]] = []

    def tell(self, *news: News) -> None:
        for one in news:
            for listener in self._listeners:
                listener(one)

    def listen(self, listener: Callable[[News], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def call(self, call: ForwardedCall, on_progress: ProgressListener | None = None) -> ForwardedAnswer:
        raise HostUnreachable(self.state.name, "nobody is there")

    async def open_stream(self, request: StreamRequest) -> Stream:
        raise HostUnreachable(self.state.name, "nobody is there")

    async def aclose(self) -> None:
        pass
