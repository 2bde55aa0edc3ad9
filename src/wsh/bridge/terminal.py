"""Terminals at the desktop end, as the bridge sees them: an owner, kept output, an end.

The program behind a terminal belongs to the desktop; this only keeps what it printed, what came of lines that were typed
into it, and when it ended, so that reads can be answered and output streamed without asking the window.
"""

from __future__ import annotations

from collections import OrderedDict

from wsh.bridge.frame import LineFrame
from wsh.wire.buffer import OutputBuffer

KEPT_ENDED = 256
"""Terminals that have ended and can still be read."""
_KEPT_LINES = 16


class BridgeTerminal:
    """One terminal. Is the sink that the desktop writes its output to."""

    def __init__(self, session_id: str, terminal_id: str, owner: str, trace_id: str, max_bytes: int) -> None:
        self.session_id = session_id
        self.terminal_id = terminal_id
        self.owner = owner
        self.trace_id = trace_id
        self.buffer = OutputBuffer(max_bytes)
        self.running = True
        self.exit_code: int | None = None
        self.terminated = False
        self.survivors: list[int] = []
        self.lines: OrderedDict[str, LineFrame] = OrderedDict()
        """What is known of the newest lines, by their requests: for a connection that comes after another has dropped."""

    def keep_line(self, frame: LineFrame) -> None:
        """Keeps how a line ended, which is said nowhere else; its text is in the output."""
        self.lines[frame.request] = frame.model_copy(update={"output": None})
        self.lines.move_to_end(frame.request)
        if len(self.lines) > _KEPT_LINES:
            self.lines.popitem(last=False)

    def output(self, data: bytes) -> None:
        if self.running:
            self.buffer.append(data)

    def exited(self, exit_code: int | None) -> None:
        if self.running:
            self.running = False
            self.exit_code = exit_code
            self.buffer.wake()


class TerminalShelf:
    """All terminals of a listener, each known only to the runtime session that asked for it."""

    def __init__(self, buffer_bytes: int) -> None:
        self.buffer_bytes = buffer_bytes
        self._all: OrderedDict[str, BridgeTerminal] = OrderedDict()

    def add(self, session_id: str, terminal_id: str, owner: str, trace_id: str) -> BridgeTerminal:
        terminal = BridgeTerminal(session_id, terminal_id, owner, trace_id, self.buffer_bytes)
        self._all[terminal_id] = terminal
        ended = [key for key, known in self._all.items() if not known.running]
        for key in ended[: max(0, len(ended) - KEPT_ENDED)]:
            del self._all[key]
        return terminal

    def find(self, terminal_id: str, owner: str) -> BridgeTerminal | None:
        terminal = self._all.get(terminal_id)
        return terminal if terminal is not None and terminal.owner == owner else None

    def knows(self, terminal_id: str) -> bool:
        return terminal_id in self._all

    def forget(self, terminal_id: str) -> None:
        self._all.pop(terminal_id, None)

    def list_running(self) -> list[BridgeTerminal]:
        return [terminal for terminal in self._all.values() if terminal.running]
