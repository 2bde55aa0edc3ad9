"""What a terminal of the contract tells, kept with its identity: output, its end, and what came of lines typed into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsh.bridge.frame import Exit, LineFrame, OutputFrame
from wsh.contract.adapters.base import RuntimeAdapter
from wsh.contract.identity import Identity
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.contract.ask.asked import AskedRequest

_KEPT_LINES = 16


class OutputObserver:
    """Hears what a terminal at the desktop prints, into an identity's log."""

    def __init__(self, identity: Identity, on_exit: Callable[[Identity], None]) -> None:
        self.identity = identity
        self.received = 0
        self.is_lost = False
        """Whether the connection dropped, and the desktop was not asked since."""
        self.lines: dict[str, LineFrame] = {}
        """The newest word on the newest lines that were typed, by the request's id on the bridge."""
        self._is_approved = False
        self._on_exit = on_exit

    def take_output(self, frame: OutputFrame) -> None:
        self.take_bytes(frame.offset, frame.payload())
        if not frame.running:
            self._end(frame.exit_code)

    def take_bytes(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        gap = offset - self.received
        if gap > 0:
            self.identity.log.skip(gap)
        elif gap < 0:
            data = data[-gap:]
        self.received = max(self.received, end)
        if data:
            self.identity.log.append("stdout", data)

    def take_line(self, frame: LineFrame) -> None:
        self.lines.pop(frame.request, None)
        self.lines[frame.request] = frame
        if len(self.lines) > _KEPT_LINES:
            del self.lines[next(iter(self.lines))]
        self.identity.log.wake()

    def take_exit(self, frame: Exit) -> None:
        if frame.terminated:
            self.identity.terminated = True
        self._end(frame.exit_code)

    @property
    def is_over(self) -> bool:
        return not self.identity.running

    def lose(self) -> None:
        self.is_lost = True
        self.identity.log.wake()

    def _end(self, exit_code: int | None) -> None:
        if self.identity.running:
            self.identity.end(exit_code)
            if self._is_approved:
                self._on_exit(self.identity)

    def approved(self) -> None:
        """The yes is in the trail. A quick command may have ended before; its end is told now, in that order."""
        self._is_approved = True
        if not self.identity.running:
            self._on_exit(self.identity)


@dataclass
class Attached:
    """An identity's `handle`: its adapter and what listens to it."""

    adapter: RuntimeAdapter
    ear: OutputObserver
    asked: AskedRequest
    """The request that opened it."""
    lines: list[AskedRequest] = field(default_factory=list)
    """Lines that wait for a person."""


@dataclass(frozen=True)
class TypedCommand:
    """A line that was typed into a terminal, and what is known of its end by now."""

    command: str
    request: str
    ear: OutputObserver
    asked: AskedRequest

    @property
    def frame(self) -> LineFrame | None:
        return self.ear.lines.get(self.request)

    def describe(self, identity: Identity) -> JsonObject:
        """The end of this line as a result tells it: known from the shell, or with the terminal that it was typed into."""
        if not self.asked.is_approved:
            approval = "pending" if self.asked.is_pending else self.asked.outcome
            return {"command": self.command, "approval": approval, "running": False, "exit_code": None}
        frame = self.frame
        ended = frame is not None and frame.finished_by in ("command", "exit")
        told: JsonObject = {
            "command": self.command,
            "running": not ended and identity.running,
            "exit_code": frame.exit_code if frame is not None and ended else identity.exit_code,
        }
        if frame is not None and frame.finished_by is not None:
            told["finished_by"] = frame.finished_by
        elif not identity.running:
            told["finished_by"] = "exit"
        if frame is not None and frame.duration_ms is not None:
            told["duration_ms"] = frame.duration_ms
        return told
