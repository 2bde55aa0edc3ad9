"""What one end of the bridge has seen of a terminal."""

from __future__ import annotations

from wsh.bridge.frame import Exit, LineFrame, OutputFrame
from wsh.wire.buffer import OutputBuffer


class SeenTerminal:
    """Output, lines and end of one terminal, as they arrived. Complete when `running` is False."""

    def __init__(self, max_bytes: int) -> None:
        self.buffer = OutputBuffer(max_bytes)
        self.running = True
        self.is_lost = False
        self.exit_code: int | None = None
        self.terminated = False
        self.survivors: list[int] = []
        self.lines: list[LineFrame] = []

    def take_line(self, frame: LineFrame) -> None:
        self.lines.append(frame)
        self.buffer.wake()

    def take_output(self, frame: OutputFrame) -> None:
        gap = frame.offset - self.buffer.end
        data = frame.payload()
        if gap > 0:
            self.buffer.skip(gap)
        elif gap < 0:
            data = data[-gap:]
        if data:
            self.buffer.append(data)
        if not frame.running:
            self._end(frame.exit_code)

    def take_exit(self, frame: Exit) -> None:
        self.terminated = self.terminated or frame.terminated
        self.survivors = list(frame.survivors)
        self._end(frame.exit_code)

    def _end(self, exit_code: int | None) -> None:
        if self.running:
            self.running = False
            self.exit_code = exit_code
        self.buffer.wake()

    @property
    def is_over(self) -> bool:
        return not self.running

    def lose(self) -> None:
        """The connection is gone; what the terminal does now is not known."""
        if self.running:
            self.is_lost = True
            self.buffer.wake()
