"""What is worth a notice: looks at a session when its output pauses, when a command ends and when it exits; nothing is polled."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from wsh.inbox.item import InboxItem, InboxLimits, list_items, was_left
from wsh.notice.outbox import Delivery, Notice, Outbox
from wsh.notice.rule import WAITING, Channel, NoticeKind, RuleBook
from wsh.session import event as ev
from wsh.session.event import SessionEvent
from wsh.session.registry import SessionCreated, SessionDestroyed, SessionRegistry
from wsh.session.session import Session
from wsh.session.state import find_word
from wsh.wire.error import WshError
from wsh.wire.system.task_set import TaskSet

log = logging.getLogger(__name__)

_PAUSE_S = 0.25
_SETTLED_S = 1.2
"""A program that polls for its input counts as asking after a second of silence."""
_COMMANDS = 50
_MOST_COUNTED = 10_000
_HOST = "host:"
"""Begins what stands in place of a session's id for everything of another machine."""
_LONGEST_TEXT = 400
_TITLES: dict[NoticeKind, str] = {
    "request": "An agent asks for your approval",
    "hidden": "{} asks for something hidden",
    "asks": "{} asks",
    "failed": "{}: a command failed",
    "finished": "{}: a command ended",
    "exited": "{} has exited",
    "quiet": "{} has gone quiet",
    "told": "{} says",
}


@dataclass(frozen=True)
class FarNotice:
    """A notice as another machine's outbox has it."""

    seq: int
    id: str
    kind: NoticeKind
    since: float
    text: str
    session: str | None
    request_id: str | None
    exit_code: int | None
    duration_ms: float | None
    over: bool


@dataclass(frozen=True)
class AskedOfPerson:
    """A request for approval that waits. `notified`: the place that shows it tells the desktop by itself."""

    id: str
    since: float
    command: str
    notified: bool


def make_title(kind: NoticeKind, session: str | None) -> str:
    return _TITLES[kind].format(session or "A session")


class NoticeWatch:
    """Puts what the rules want into the outbox.

    `found` is called after that, when the outbox is to be sent; `known` when `knows` may have another answer.
    """

    def __init__(
        self,
        registry: SessionRegistry,
        outbox: Outbox,
        book: RuleBook,
        *,
        keep_s: float,
        present_s: float,
        per_minute: int,
        is_there: Callable[[Channel], bool],
        found: Callable[[], None],
        known: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._outbox = outbox
        self._book = book
        self._keep_s, self._present_s, self._per_minute = keep_s, present_s, per_minute
        self._is_there, self._found, self._known = is_there, found, known
        self._stops: dict[str, Callable[[], None]] = {}
        self._timers: dict[str, tuple[float, asyncio.Handle]] = {}
        """When each session is looked at next, by the monotonic clock, and what will do it."""
        self._looking: set[str] = set()
        self._again: set[str] = set()
        """Sessions that are to be looked at once more after the look that is under way."""
        self._looked: set[str] = set()
        """Sessions that were looked at since the server began."""
        self._recent: dict[str, deque[float]] = {}
        """When the newest notices of each session were made, at most as many as are told within a minute."""
        self._tasks = TaskSet()
        self.list_requests: Callable[[], Sequence[AskedOfPerson]] = tuple
        """Requests that wait for a person now."""
        self.requests_known = False
        """Whether the room that has requests is open; before that, nobody knows that one is over."""

    def start(self) -> None:
        self._book.changed = self._apply_rules
        self._book.refresh()
        self._stops[""] = self._registry.lifecycle.add(self._on_lifecycle)
        sessions = self._registry.list_sessions()
        for session in sessions:
            self._follow(session)
        there = {session.sid for session in sessions}
        for notice in self._outbox.list_open(("asks", "hidden")):
            if notice.sid not in there and notice.host is None:
                self._outbox.end(notice.id)

    async def aclose(self) -> None:
        for stop in self._stops.values():
            stop()
        for _, timer in self._timers.values():
            timer.cancel()
        await self._tasks.aclose()

    def _apply_rules(self) -> None:
        """Other rules are in force: they tell of what ends from now on, and of silences that last already."""
        self._outbox.forget_before(min(self._book.since, time.time()))
        for session in self._registry.list_sessions():
            self._schedule(session, 0.0)

    def look_at_requests(self) -> None:
        """Called when one came or ended."""
        waiting = self.list_requests()
        ids = {f"request.{one.id}" for one in waiting}
        for one in waiting:
            skip: tuple[Channel, ...] = ("desktop",) if one.notified else ()
            self._put(f"request.{one.id}", ("request",), one.since, one.command, request_id=one.id, skip=skip)
        for notice in self._outbox.list_open(("request",)) if self.requests_known else ():
            if notice.id not in ids and not notice.sid:
                self._outbox.end(notice.id)
        self._found()
        self._known()

    def knows(self, notice: Notice) -> bool:
        """Whether this server has looked if what the notice tells of still waits; an earlier one may have put it into the outbox."""
        if not notice.waits or notice.host is not None:
            return True
        return self.requests_known if notice.kind == "request" else notice.sid in self._looked

    def get_heard(self, host: str) -> int | None:
        """The number of the newest notice that another machine told of; None if it told of none yet."""
        return self._outbox.heard.get(_HOST + host)

    def has_open(self, host: str) -> bool:
        return bool(self._outbox.list_open(WAITING, _HOST + host))

    def take_far(self, host: str, told: Sequence[FarNotice], newest: int) -> None:
        """What another machine found worth telling is told here, too, by the rules and channels of here. Once per notice."""
        heard = self.get_heard(host)
        for one in told:
            id = f"{host}/{one.id}"
            if one.over:
                self._outbox.end(id)
            elif one.seq > (heard or 0) and (heard is not None or one.kind in WAITING):
                kinds: tuple[NoticeKind, ...] = (one.kind,)
                if one.kind == "exited":
                    kinds = ("exited", "failed" if one.exit_code else "finished")
                self._put(
                    id,
                    kinds,
                    one.since,
                    one.text,
                    place=(f"{host}/{one.session}" if one.session is not None else None, _HOST + host),
                    took_s=None if one.duration_ms is None else one.duration_ms / 1000,
                    request_id=None if one.request_id is None else f"{host}/{one.request_id}",
                    exit_code=one.exit_code,
                    duration_ms=one.duration_ms,
                )
        if newest != heard:
            self._outbox.hear(_HOST + host, newest)
        self._found()

    def find(self, sid: str) -> Session | None:
        return next((session for session in self._registry.list_sessions() if session.sid == sid), None)

    # sessions

    def _on_lifecycle(self, event: object) -> None:
        if isinstance(event, SessionCreated):
            self._follow(event.session)
        elif isinstance(event, SessionDestroyed):
            self._unfollow(event.sid)

    def _follow(self, session: Session) -> None:
        if session.sid not in self._stops:
            self._stops[session.sid] = session.listeners.add(lambda event: self._hear(session, event))
            self._take_messages(session)
            self._schedule(session, 0.0)

    def _unfollow(self, sid: str) -> None:
        stop, look = self._stops.pop(sid, None), self._timers.pop(sid, None)
        self._recent.pop(sid, None)
        self._looked.discard(sid)
        if stop is not None:
            stop()
        if look is not None:
            look[1].cancel()
        for notice in self._outbox.list_open(("asks", "hidden"), sid):
            self._outbox.end(notice.id)

    def _hear(self, session: Session, event: SessionEvent) -> None:
        match event:
            case ev.Notification():
                self._take_messages(session)
            case ev.Output() | ev.Input():
                look = self._timers.get(session.sid)
                # One that waits for a silence would come too late for a question.
                if look is None or look[0] > time.monotonic() + _PAUSE_S:
                    self._schedule(session, _PAUSE_S)
            case ev.CommandFinished() | ev.Exited():
                self._schedule(session, 0.0)

    def _take_messages(self, session: Session) -> None:
        """What its programs said by OSC 9 or OSC 777, also before anybody listened. Several may have been parsed at once."""
        if not session.messages:
            return  # told with an earlier one of the same output
        taken, heard = list(session.messages), self._outbox.heard.get(session.sid, -1)
        session.messages.clear()
        for offset, together in groupby(taken, key=lambda one: one[0]):
            if offset <= heard:
                continue
            self._outbox.hear(session.sid, offset)
            for at, (_, message) in enumerate(together):
                text = ": ".join(part for part in (message.title, message.body) if part)
                self._put(f"told.{session.sid}.{offset}.{at}", ("told",), time.time(), text, session=session)
        self._found()

    def _schedule(self, session: Session, delay_s: float) -> None:
        old = self._timers.get(session.sid)
        if old is not None:
            old[1].cancel()
        timer = asyncio.get_running_loop().call_later(delay_s, self._wake, session)
        self._timers[session.sid] = (time.monotonic() + delay_s, timer)

    def _wake(self, session: Session) -> None:
        self._timers.pop(session.sid, None)
        silent_s = time.monotonic() - session.last_activity
        if session.running and silent_s < _PAUSE_S:
            self._schedule(session, _PAUSE_S - silent_s + 0.01)
        if session.sid in self._looking:
            self._again.add(session.sid)
        else:
            self._looking.add(session.sid)
            self._tasks.start(self._look_in_turn(session))

    async def _look_in_turn(self, session: Session) -> None:
        """One look after the other: the answer to an older one would be taken for what is true now."""
        sid = session.sid
        try:
            while True:
                self._again.discard(sid)
                await self._look(session)
                if sid not in self._again:
                    return
        finally:
            self._looking.discard(sid)
            self._again.discard(sid)

    async def _look(self, session: Session) -> None:
        try:
            state = await find_word(session)
        except WshError:
            return
        if session.closed:
            return
        self._book.refresh()
        now = time.time()
        limits = InboxLimits(0.0, self._keep_s, _COMMANDS)
        asking = None
        for item in list_items(session, state, limits, now):
            if item.kind in ("asks", "hidden"):
                asking = item
            elif item.since > self._outbox.floor:
                self._put_ended(session, item)
        self._ask(session, asking)
        if session.sid not in self._looked:
            self._looked.add(session.sid)
            self._known()
        if session.ended is not None and session.ended > self._outbox.floor:
            self._put_exit(session)
        self._watch_silence(session, state == "running")
        self._found()

    def _ask(self, session: Session, item: InboxItem | None) -> None:
        row = session.terminal.total_lines if item is not None else 0
        for notice in self._outbox.list_open(("asks", "hidden"), session.sid):
            # What somebody types behind the question is shown on its line.
            same = item is not None and notice.row == row and notice.kind == item.kind
            if same and item is not None and (item.line.startswith(notice.text) or item.kind == "hidden"):
                return
            self._outbox.end(notice.id)
        if item is not None:
            kind: NoticeKind = "hidden" if item.kind == "hidden" else "asks"
            self._put(
                f"{kind}.{session.sid}.{row}.{session.generation}",
                (kind,),
                item.since,
                item.line,
                session=session,
                row=row,
            )

    def _put_ended(self, session: Session, item: InboxItem) -> None:
        if item.id.startswith("exit."):
            return
        kind: NoticeKind = "failed" if item.kind == "failed" else "finished"
        self._put(
            item.id,
            (kind,),
            item.since,
            item.what,
            session=session,
            took_s=(item.duration_ms or 0.0) / 1000,
            exit_code=item.exit_code,
            duration_ms=item.duration_ms,
        )

    def _put_exit(self, session: Session) -> None:
        ended = session.ended or 0.0
        kinds: tuple[NoticeKind, ...] = ("exited",)
        if session.exit_code != 0 and not was_left(session):
            kinds = ("exited", "failed")
        elif session.commands is None:
            kinds = ("exited", "finished")
        took_s = max(0.0, ended - session.created)
        self._put(
            f"exit.{session.sid}",
            kinds,
            ended,
            session.command,
            session=session,
            took_s=took_s,
            exit_code=session.exit_code,
            duration_ms=took_s * 1000,
        )

    def _watch_silence(self, session: Session, works: bool) -> None:
        """Come back when a rule would tell of the silence, or when a program that polls has settled."""
        if not session.running or session.sid in self._timers:
            return
        silent_s = time.monotonic() - session.last_activity
        limits = {s for rule in self._book.rules if (s := rule.quiet_s) is not None} if works else set()
        for limit_s in sorted(limits):
            if silent_s >= limit_s:
                id = f"quiet.{session.sid}.{session.generation}.{limit_s:g}"
                self._put(id, ("quiet",), time.time() - silent_s, session.command, session=session, quiet_s=limit_s)
        later = [s for s in (_SETTLED_S, *limits) if s > silent_s]
        if later:
            self._schedule(session, min(later) - silent_s + 0.01)

    # the outbox

    def _put(
        self,
        id: str,
        kinds: tuple[NoticeKind, ...],
        since: float,
        text: str,
        *,
        session: Session | None = None,
        place: tuple[str | None, str] = (None, ""),
        took_s: float | None = None,
        quiet_s: float | None = None,
        row: int = 0,
        request_id: str | None = None,
        exit_code: int | None = None,
        duration_ms: float | None = None,
        skip: tuple[Channel, ...] = (),
    ) -> None:
        """Once per id, and only where a rule wants it. `place` is name and sid of what is no session of this server."""
        if id in self._outbox.notices:
            return
        name, sid = (session.name, session.sid) if session is not None else place
        rules = [rule for rule in self._book.rules if rule.fits(kinds, name, took_s, quiet_s)]
        if not rules:
            return
        now = time.time()
        later = now + self._left_to_look(session)
        typed = next((rule for rule in rules if rule.into), None)
        channels = dict.fromkeys(channel for rule in rules for channel in rule.to)
        # Sessions of another machine have no id here.
        held = self._is_too_many(sid if session is not None else name or sid, now)
        deliveries = {
            channel: Delivery("sent")
            if channel == "page"
            else Delivery("held", why="too many within a minute")
            if held
            else Delivery(next_at=later)
            for channel in channels
            if channel not in skip and self._is_there(channel)
        }
        self._outbox.add(
            Notice(
                self._outbox.next_seq(),
                id,
                kinds[0],
                since,
                now,
                make_title(kinds[0], name),
                text[:_LONGEST_TEXT],
                name,
                sid,
                row,
                request_id,
                exit_code,
                duration_ms,
                into=typed.into if typed is not None else "",
                line=typed.line if typed is not None else "",
                front=typed.front if typed is not None else 0,
                deliveries=deliveries,
            )
        )

    def _left_to_look(self, session: Session | None) -> float:
        """How long the person who typed there last is taken to be looking still."""
        if session is None or session.input.person_typed is None:
            return 0.0
        return max(0.0, self._present_s - (time.monotonic() - session.input.person_typed))

    def _is_too_many(self, whose: str, now: float) -> bool:
        recent = self._recent.pop(whose, None) or deque(maxlen=self._per_minute)
        self._recent[whose] = recent
        while len(self._recent) > _MOST_COUNTED:
            del self._recent[next(iter(self._recent))]
        too_many = len(recent) == self._per_minute and now - recent[0] < 60
        recent.append(now)
        return too_many
