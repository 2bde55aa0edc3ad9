"""One client's interest in one session: which events, and how often."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from wsh.http.ws.sender import WsSender
from wsh.http.ws.slow_consumer import SlowConsumer
from wsh.session.event import Destroyed, Exited, Output, SessionEvent
from wsh.session.session import Session
from wsh.visual.element import ElementChanged
from wsh.visual.feed import Feed, Feeds
from wsh.visual.input.capture import FocusChanged, InputEvent, ModeChanged
from wsh.visual.stage import StageEvent
from wsh.visual.stage_registry import StageRegistry
from wsh.wire.error import InvalidRequest
from wsh.wire.model.base import Format, Model

EVENTS = ("lines", "chars", "cursor", "mode", "diffs", "input", "overlay", "activity", "commands", "exit")
_ALSO = {
    "line": "lines",
    "char": "chars",
    "diff": "diffs",
    "panel": "overlay",
    "idle": "activity",
    "running": "activity",
    "command": "commands",
    "command_started": "commands",
    "command_finished": "commands",
}
_IDLE_MS = 1000


class Subscribe(Model):
    """What to hear of a session; replaces what was asked before."""

    events: Annotated[list[str], Field(max_length=64)]
    interval_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 100
    format: Format = "styled"
    idle_timeout_ms: Annotated[int, Field(ge=0, le=86_400_000)] = 0
    quiesce_ms: Annotated[int, Field(ge=0, le=86_400_000, description="An older name of idle_timeout_ms.")] = 0

    @property
    def idle_ms(self) -> int:
        return self.idle_timeout_ms or self.quiesce_ms


def check_events(given: list[str]) -> frozenset[str]:
    """The names, with singular forms read as their plurals. Raises InvalidRequest for others."""
    found = [_ALSO.get(name, name) for name in given]
    for name in found:
        if name not in EVENTS:
            raise InvalidRequest(f"There is no event {name[:40]!r}.", hint=f"Choose from {', '.join(EVENTS)}.")
    return frozenset(found)


class Subscription:
    def __init__(
        self,
        stages: StageRegistry,
        feeds: Feeds,
        session: Session,
        outlet: WsSender,
        wanted: Subscribe,
        *,
        allowance: int,
        named: bool,
    ) -> None:
        self.session = session
        self.events = check_events(wanted.events)
        self.named = named
        self._stages = stages
        self._feeds = feeds
        self._outlet = outlet
        self._wanted = wanted
        self._stream = SlowConsumer(outlet, allowance, self._start_anew)
        self._idle: asyncio.TimerHandle | None = None
        self._is_idle = False
        self._missed_silence = False
        """Whether `idle` or `running` was skipped last."""
        self._missed_exit: Exited | None = None
        self._watches_idle = wanted.idle_ms > 0 or "activity" in self.events
        self._idle_s = (wanted.idle_ms or _IDLE_MS) / 1000
        self._loop = asyncio.get_running_loop()
        self._stops: list[Callable[[], None]] = []
        self._feed: Feed | None = None
        self.closed = False

    @property
    def started(self) -> bool:
        return self._feed is not None

    def start(self) -> None:
        """Join the feed, send `sync`, and go on from there."""
        self._feed = self._feeds.join(self.session, self._wanted.format, self._wanted.interval_ms, self)
        self._send(self._feed.sync())
        if {"input", "overlay"} & self.events:
            self._stops.append(self._stages.of(self.session).subscribe(self._on_stage))
        if self._watches_idle:
            self._stops.append(self.session.listeners.add(self._on_session))
            self._look_at_silence()
        self._stops.append(self.session.listeners.add(self._on_end))

    def close(self) -> None:
        self.closed = True
        for stop in self._stops:
            stop()
        self._stops = []
        self._stream.close()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._feed is not None:
            self._feeds.leave(self._feed, self._wanted.interval_ms, self)
            self._feed = None

    # events

    def deliver(self, frames: bytes, count: int) -> None:
        """Pass news on."""
        self._stream.send(frames, count=count)

    def _start_anew(self, skipped: int) -> bool:
        """Send the screen, and what was skipped that no screen tells and that is still true."""
        if self._feed is None:
            return False
        self._send({"event": "lagged", "skipped": skipped})
        self._send(self._feed.sync())
        if self._missed_silence:
            self._missed_silence = False
            self._send(self._describe_silence())
        if self._missed_exit is not None:
            ended, self._missed_exit = self._missed_exit, None
            self._send({"event": "exit", "exit_code": ended.exit_code, "signal": ended.signal})
        return True

    def _send(self, body: dict[str, object]) -> None:
        assert self._feed is not None
        self._outlet.write(self._feed.encode(body, self.named))

    def _send_or_skip(self, body: dict[str, object]) -> None:
        if self._feed is not None:
            self.deliver(self._feed.encode(body, self.named), 1)

    # silence

    def _on_session(self, event: SessionEvent) -> None:
        if isinstance(event, Output):
            if self._is_idle:
                self._is_idle = False
                self._tell_silence()
            if self._idle is None:
                self._idle = self._loop.call_later(self._idle_s, self._look_at_silence)

    def _on_end(self, event: SessionEvent) -> None:
        if isinstance(event, Destroyed):
            self.close()
        elif isinstance(event, Exited) and "exit" in self.events and self._stream.is_behind:
            # The feed joined the session's listeners first: it has told of the end already, and that was skipped.
            self._missed_exit = event

    def _look_at_silence(self) -> None:
        self._idle = None
        silent_s = self.session.last_activity_ms / 1000
        if silent_s < self._idle_s:
            self._idle = self._loop.call_later(self._idle_s - silent_s + 0.001, self._look_at_silence)
        elif not self._is_idle:
            self._is_idle = True
            self._tell_silence()

    def _tell_silence(self) -> None:
        self._send_or_skip(self._describe_silence())
        self._missed_silence = self._stream.is_behind

    def _describe_silence(self) -> dict[str, object]:
        if not self._is_idle:
            return {"event": "running", "generation": self.session.generation}
        screen = self._stages.read_screen(self.session, self._wanted.format)
        return {"event": "idle", "generation": self.session.generation, "screen": screen}

    # the stage

    def _on_stage(self, event: StageEvent) -> None:
        match event:
            case ElementChanged() if "overlay" in self.events:
                element = event.element.model_dump(mode="json")
                self._send_or_skip(
                    {"event": event.kind, "action": event.action, "id": event.element.id, event.kind: element}
                )
            case InputEvent() if "input" in self.events:
                self._send_or_skip(input_event(event))
            case ModeChanged() if "input" in self.events:
                self._send_or_skip({"event": "input_mode", "mode": event.mode})
            case FocusChanged() if "input" in self.events:
                self._send_or_skip({"event": "focus", "focused": event.focused})
            case _:
                pass


def input_event(event: InputEvent) -> dict[str, object]:
    """Keys as an event: `raw` is text where the bytes are UTF-8, else base64 as `raw_base64`."""
    body: dict[str, object] = {"event": "input", "seq": event.seq, "key": event.key, "viewer": event.viewer}
    try:
        body["raw"] = event.raw.decode()
    except UnicodeDecodeError:
        body["raw"] = ""
        body["raw_base64"] = base64.b64encode(event.raw).decode()
    if event.target is not None:
        body["target"] = event.target
    return body
