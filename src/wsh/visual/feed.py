"""News of one session's screen, made once per interval and shared by everybody who asked for that interval and format.

A feed keeps the screen as it told it last. When output comes it waits until its interval is over, looks once, and tells
the difference; applied to the last `sync`, differences give the same screen that `get_screen` gives. While making news
costs more than a twentieth of the processor's time, the interval grows, up to `PUT_OFF_S`. A feed without members listens to nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

from wsh.session.event import (
    Bell,
    CommandFinished,
    CommandStarted,
    Destroyed,
    Exited,
    Output,
    Resized,
    ScreenModeChanged,
    SessionEvent,
    TitleChanged,
)
from wsh.session.session import Session
from wsh.visual.stage import ScreenModeEntered, StageEvent
from wsh.visual.stage_registry import StageRegistry
from wsh.visual.viewer.frame import PUT_OFF_S
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import Format

LINES_PER_TICK = 500
"""Lines that scrolled by within one interval and are told one by one; beyond it a client gets `lagged` and a `sync`."""
SHARE = 0.05
"""The part of the time that one feed may take."""
SCREEN_EVENTS = frozenset({"lines", "chars", "cursor", "mode", "diffs"})

Event = tuple[frozenset[str], JsonObject]
"""Which subscriptions want it (any of these names), and what it says."""
Encode: TypeAlias = Callable[[JsonObject], bytes]
"""How the door writes one event."""


class FeedMember(Protocol):
    """A subscription. `named` says whether its events carry the session's name."""

    events: frozenset[str]
    named: bool

    def deliver(self, frames: bytes, count: int) -> None: ...


class Feed:
    def __init__(
        self, stages: StageRegistry, encode: Encode, session: Session, format: Format, interval_ms: int
    ) -> None:
        self.session = session
        self.format = format
        self._stages = stages
        self._encode = encode
        self._interval_s = max(interval_ms, 5) / 1000
        self._loop = asyncio.get_running_loop()
        self._members: list[FeedMember] = []
        self._stops: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._seq = 0
        self._screen: JsonObject | None = None
        self._told_at = 0.0
        self._cost_s = 0.0
        self._bells = 0
        self._title: str | None = None
        self._held: int | None = None
        """Absolute number of the line under the cursor that `lines` has not been told yet."""

    # members

    def join(self, member: FeedMember) -> None:
        if not self._members:
            stage = self._stages.of(self.session)
            self._stops = [self.session.listeners.add(self._on_session), stage.subscribe(self._on_stage)]
            self._screen = None
        self._members.append(member)
        if self._screen is None:
            self._screen = self._look()

    def leave(self, member: FeedMember) -> None:
        if member in self._members:
            self._members.remove(member)
        if not self._members:
            self.close()

    def close(self) -> None:
        for stop in self._stops:
            stop()
        self._stops = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sync(self) -> JsonObject:
        """The screen as it was told last, from which the next difference is counted."""
        assert self._screen is not None
        terminal = self.session.terminal
        return {
            "event": "sync",
            "seq": self._seq,
            "screen": self._screen,
            "scrollback_lines": terminal.total_lines - terminal.first_line,
        }

    # what happens

    def _on_session(self, event: SessionEvent) -> None:
        if isinstance(event, Output):
            self._schedule()
        elif isinstance(event, Bell):
            self._bells += 1
            self._schedule()
        elif isinstance(event, TitleChanged):
            self._title = event.title
            self._schedule()
        elif isinstance(event, Resized | ScreenModeChanged):
            self._schedule()
        elif isinstance(event, CommandStarted | CommandFinished):
            self._tell_command(event)
        elif isinstance(event, Exited):
            self._tick()
            if self._held is not None:
                self._tick()  # the program has ended, so the line under the cursor has settled
            self._tell([(frozenset({"exit"}), {"event": "exit", "exit_code": event.exit_code, "signal": event.signal})])
        elif isinstance(event, Destroyed):
            # The terminal is about to be freed: nothing may look at it any more.
            self.close()

    def _tell_command(self, event: CommandStarted | CommandFinished) -> None:
        """Sent at once: that a command ended must not wait for the interval. Its output may follow."""
        log = self.session.commands
        command = log.find(event.id) if log is not None else None
        if command is not None and any("commands" in member.events for member in self._members):
            name = "command_started" if isinstance(event, CommandStarted) else "command_finished"
            self._tell([(frozenset({"commands"}), {"event": name, "command": command.to_wire()})])

    def _on_stage(self, event: StageEvent) -> None:
        if isinstance(event, ScreenModeEntered):
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is None and self._stops:
            pause = max(self._interval_s, min(self._cost_s / SHARE, PUT_OFF_S))
            self._timer = self._loop.call_at(max(self._loop.time(), self._told_at + pause), self._tick)

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._told_at = self._loop.time()
        started = time.thread_time()  # not the clock: on a busy machine a moment without the processor costs nothing
        events = self._collect()
        if events:
            self._tell(events)
        self._cost_s = time.thread_time() - started
        if self._held is not None:
            self._schedule()

    # differences

    def _look(self) -> JsonObject:
        return self._stages.read_screen(self.session, self.format)

    def _collect(self) -> list[Event]:
        events: list[Event] = []
        if self._bells:
            events.append((frozenset({"activity"}), {"event": "bell", "count": self._bells}))
            self._bells = 0
        if self._title is not None:
            events.append((frozenset({"activity"}), {"event": "title", "title": self._title}))
            self._title = None
        if not any(member.events & SCREEN_EVENTS for member in self._members):
            self._screen = self._look() if self._members else None
            self._held = None
            return events
        old, new = self._screen, self._look()
        assert old is not None
        held, self._held = self._held, None
        if old == new:
            if held is not None:
                events += self._line_events(new, {held}, settled=True)
            return events
        self._screen = new
        self._seq += 1
        if new["alternate_active"] != old["alternate_active"]:
            body = {"event": "mode", "alternate_active": new["alternate_active"]}
            events.append((frozenset({"mode"}), body))
        reason = _why_reset(old, new)
        if reason is not None:
            wanting = frozenset({"lines", "chars", "diffs"})
            events.append((wanting, {"event": "reset", "reason": reason}))
            events.append((wanting, self.sync()))
        else:
            events += self._differences(old, new, held)
        if new["cursor"] != old["cursor"]:
            events.append((frozenset({"cursor"}), {"event": "cursor", "seq": self._seq, **new["cursor"]}))
        return events

    def _differences(self, old: JsonObject, new: JsonObject, held: int | None) -> list[Event]:
        events: list[Event] = []
        if any(member.events & {"lines", "chars"} for member in self._members):
            events += self._changed_lines(old, new, held)
        if any("diffs" in member.events for member in self._members):
            before, now = old["lines"], new["lines"]
            rows = [
                {"row": n, "line": line} for n, line in enumerate(now) if line is not before[n] and line != before[n]
            ]
            body = {"event": "diff", "seq": self._seq, "base_seq": self._seq - 1, "rows": rows}
            body |= {key: new[key] for key in ("cursor", "first_line_index", "total_lines", "epoch", "mode")}
            events.append((frozenset({"diffs"}), body))
        return events

    def _changed_lines(self, old: JsonObject, new: JsonObject, held: int | None) -> list[Event]:
        """One `line` event per new or changed line, scrolled ones included."""
        first_old, first_new = old["first_line_index"], new["first_line_index"]
        before = dict(enumerate(old["lines"], first_old))
        now: dict[int, object] = {}
        skipped = 0
        if first_new > first_old:
            begin = max(first_old, first_new - LINES_PER_TICK)
            skipped = begin - first_old
            styled = self.format == "styled"
            scrolled = self.session.terminal.lines_between(begin, first_new, styled)
            now |= zip(range(first_new - len(scrolled), first_new), scrolled, strict=True)
        now |= enumerate(new["lines"], first_new)
        blank: tuple[object, ...] = ("", [])
        changed = {n for n, line in now.items() if line != before.get(n, None if n < new["total_lines"] else line)}
        changed -= {n for n in changed if n not in before and n >= new["total_lines"] and now[n] in blank}
        if held is not None and held in now:
            changed.add(held)
        wanting = frozenset({"lines", "chars"})
        if skipped > 0:
            return [(wanting, {"event": "lagged", "skipped": skipped}), (wanting, self.sync())]
        return self._line_events(new, changed, lines=now)

    def _line_events(
        self, screen: JsonObject, numbers: set[int], *, lines: dict[int, object] | None = None, settled: bool = False
    ) -> list[Event]:
        """The line under the cursor is still being written: `chars` hears of it now, `lines` when it has settled."""
        if lines is None:
            lines = dict(enumerate(screen["lines"], screen["first_line_index"]))
        under = screen["first_line_index"] + screen["cursor"]["row"]
        events: list[Event] = []
        for number in sorted(numbers):
            if number not in lines:
                continue
            body = {
                "event": "line",
                "seq": self._seq,
                "index": number,
                "total_lines": screen["total_lines"],
                "line": lines[number],
            }
            if settled:
                events.append((frozenset({"lines"}), body))
            elif number == under:
                self._held = number
                events.append((frozenset({"chars"}), body))
            else:
                events.append((frozenset({"lines", "chars"}), body))
        return events

    # telling

    def _tell(self, events: list[Event]) -> None:
        """Encode once for each kind of member, and hand the same bytes to all of that kind."""
        made: dict[tuple[frozenset[str], bool], tuple[bytes, int]] = {}
        encoded: dict[tuple[int, bool], bytes] = {}
        for member in list(self._members):
            key = (member.events, member.named)
            if key not in made:
                wanted = [n for n, (names, _) in enumerate(events) if names & member.events]
                for n in wanted:
                    if (n, member.named) not in encoded:
                        encoded[n, member.named] = self.encode(events[n][1], member.named)
                made[key] = (b"".join(encoded[n, member.named] for n in wanted), len(wanted))
            frames, count = made[key]
            if count:
                member.deliver(frames, count)

    def encode(self, body: JsonObject, named: bool) -> bytes:
        return self._encode({**body, "session": self.session.name} if named else body)


def _why_reset(old: JsonObject, new: JsonObject) -> str | None:
    if (old["rows"], old["cols"]) != (new["rows"], new["cols"]):
        return "resize"
    if old["alternate_active"] != new["alternate_active"]:
        return "screen_mode"
    if old["epoch"] != new["epoch"] or new["first_line_index"] < old["first_line_index"]:
        return "renumbered"
    return None


class Feeds:
    """All feeds, by session, format and interval."""

    def __init__(self, stages: StageRegistry, encode: Encode) -> None:
        self._stages = stages
        self._encode = encode
        self._feeds: dict[tuple[str, Format, int], Feed] = {}

    def join(self, session: Session, format: Format, interval_ms: int, member: FeedMember) -> Feed:
        key = (session.sid, format, interval_ms)
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(self._stages, self._encode, session, format, interval_ms)
        feed.join(member)
        return feed

    def leave(self, feed: Feed, interval_ms: int, member: FeedMember) -> None:
        feed.leave(member)
        key = (feed.session.sid, feed.format, interval_ms)
        if not feed._members and self._feeds.get(key) is feed:
            del self._feeds[key]
