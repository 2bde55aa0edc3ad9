"""All of it together: what is watched, kept and sent."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from secrets import token_hex

from wsh.inbox.wake import Wakes
from wsh.notice.deliver import Courier
from wsh.notice.outbox import Delivery, Notice, Outbox
from wsh.notice.post import Undelivered, check_url, post
from wsh.notice.push import Pushes
from wsh.notice.rule import Channel, NoticeRule, RuleBook, check_rule
from wsh.notice.watch import NoticeWatch
from wsh.session.command.foreground import find_front
from wsh.session.registry import SessionRegistry
from wsh.wire.error import InvalidRequest, WshError
from wsh.wire.setting import Settings
from wsh.wire.system.place import Places
from wsh.wire.system.task_set import TaskSet

log = logging.getLogger(__name__)

_MOST_ASIDE = 32
"""Answers of other servers that are waited for at once."""
_BETWEEN_WRITES_S = 0.1
"""A program may have something to say thousands of times a second."""


class Notices:
    """`load` before the sessions are restored, `start` after that. `aclose` leaves what is due to the next server."""

    def __init__(self, places: Places, settings: Settings) -> None:
        self._settings = settings
        self.outbox = Outbox(places.outbox, settings.get_int("notify.keep"))
        self.book = RuleBook(places.notify_file)
        # Other servers may take their time, and the threads of this one have other things to do.
        self._aside = ThreadPoolExecutor(_MOST_ASIDE, "notice")
        self.pushes = Pushes(
            places.push,
            self._aside,
            contact=settings.get_str("notify.push_contact"),
            loopback=settings.get_bool("notify.push_loopback"),
            most=settings.get_int("notify.max_subscriptions"),
            timeout_s=settings.get_float("notify.timeout_s"),
        )
        self.notify_desktop: Callable[[str, str, bool], bool] = lambda title, text, urgent: False
        """Shows a notice on this machine's desktop; False where there is none."""
        self.has_desktop = False
        self._webhook = settings.get_str("notify.webhook")
        self._wakes: Wakes | None = None
        self._watch: NoticeWatch | None = None
        self._courier: Courier | None = None
        self._commits = TaskSet()
        self._keeping = False
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Be called after each change of the outbox, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def load(self) -> None:
        await asyncio.to_thread(self.outbox.load)
        await asyncio.to_thread(self.pushes.load)

    async def start(self, registry: SessionRegistry, wakes: Wakes) -> None:
        settings = self._settings
        self._wakes = wakes
        self._registry = registry
        self._courier = Courier(
            self.outbox,
            {"push": self.pushes.send, "desktop": self._show, "webhook": self._post, "line": self._type},
            self._was_seen,
            lambda notice: self.watch.knows(notice),
            retry_s=settings.get_float("notify.retry_s"),
            longest_retry_s=settings.get_float("notify.longest_retry_s"),
            give_up_s=settings.get_float("notify.give_up_s"),
        )
        self._watch = NoticeWatch(
            registry,
            self.outbox,
            self.book,
            keep_s=settings.get_int("inbox.keep_s"),
            present_s=settings.get_float("notify.present_s"),
            per_minute=settings.get_int("notify.per_minute"),
            is_there=self.is_there,
            found=self._found,
            known=self._courier.wake,
        )
        if self.outbox.is_changed:
            await self._keep()
        self._watch.start()
        self._courier.start()
        if self.pushes.is_there:
            # What push needs takes a moment to import, and the first notice should not wait for it.
            asyncio.get_running_loop().run_in_executor(None, _import_push)

    async def aclose(self) -> None:
        if self._watch is not None and self._courier is not None:
            await self._watch.aclose()
            await self._courier.aclose()
        await self._commits.wait()
        self._aside.shutdown(wait=False)

    @property
    def watch(self) -> NoticeWatch:
        assert self._watch is not None, "not started"
        return self._watch

    def is_there(self, channel: Channel) -> bool:
        """Whether the channel leads anywhere now."""
        match channel:
            case "push":
                return self.pushes.is_there
            case "webhook":
                return bool(self._webhook)
            case "desktop":
                return self.has_desktop
            case "page" | "line":
                return True

    def describe(self, channel: Channel) -> str:
        """What the channel leads to, without secrets: an address of a webhook may hold one."""
        match channel:
            case "push":
                count = len(self.pushes.list_subscriptions())
                return f"{count} browser{'s' * (count != 1)}" if count else "no browser has subscribed"
            case "webhook":
                try:
                    return check_url(self._webhook, loopback=True, plain=True).netloc if self._webhook else "not set"
                except InvalidRequest:
                    return "the setting notify.webhook is no address"
            case "desktop":
                return "this machine's desktop" if self.has_desktop else "the server has no desktop"
            case "page":
                return "every page that is open"
            case "line":
                return "typed into the session that a rule names"

    def list_notices(self, after: int, limit: int) -> list[Notice]:
        """As they are on disk, oldest first: the newest `limit` with a number above `after`."""
        return [one for one in self.outbox.kept.values() if one.seq > after][-limit:]

    def set_rules(self, rules: list[dict[str, object]] | None) -> None:
        """Replace all rules; None goes back to the usual ones. Raises InvalidRequest, SessionNotFound."""
        self.book.refresh()
        if rules is not None and self.book.warning is not None:
            hint = "Correct the file; or drop what stands there and begin with the usual rules: `wsh notify reset`."
            raise InvalidRequest(self.book.warning, hint=hint)
        self.book.write(None if rules is None else [self._pin(check_rule(one)) for one in rules])

    def _pin(self, rule: NoticeRule) -> NoticeRule:
        """A line is meant for the program that is in front of its session when the rule is made, not when it is written again."""
        if not rule.into or rule.front or rule in self.book.rules:
            return rule
        return replace(rule, front=find_front(self._registry.get_session(rule.into)))

    async def test(self, channel: Channel) -> Notice:
        """A notice that says it is a test, by one channel; returns when it was sent, or not."""
        now = time.time()
        notice = Notice(
            self.outbox.next_seq(), f"test.{token_hex(6)}", "told", now, now, "wsh", "This is a test.",
            deliveries={channel: Delivery("sent" if channel == "page" else "due")},
        )  # fmt: skip
        if not self.is_there(channel):
            raise InvalidRequest(f"The channel {channel} leads nowhere: {self.describe(channel)}.")
        if channel == "line":
            raise InvalidRequest("A line is typed when its rule applies.", hint="Use `wsh wake` to try one out.")
        self.outbox.add(notice)
        self._found()
        deadline = time.monotonic() + self._settings.get_float("notify.timeout_s") + 1
        while (kept := self.outbox.kept.get(notice.id)) is None or kept.deliveries[channel].state in ("due", "sending"):
            if time.monotonic() > deadline or (kept is not None and kept.deliveries[channel].why):
                break
            await asyncio.sleep(0.02)
        return self.outbox.notices.get(notice.id, notice)

    # channels

    async def _show(self, notice: Notice) -> None:
        if not await asyncio.to_thread(self.notify_desktop, notice.title, notice.text, notice.waits):
            raise Undelivered("the server has no desktop", again=False)

    async def _post(self, notice: Notice) -> None:
        try:
            parts = check_url(self._webhook, loopback=True, plain=self._settings.get_bool("notify.webhook_http"))
        except InvalidRequest as problem:
            raise Undelivered(problem.message, again=False) from None
        told = {
            "id": notice.id,
            "kind": notice.kind,
            "text": notice.title,
            "session": notice.session,
            "since": notice.since,
            "exit_code": notice.exit_code,
            "duration_ms": notice.duration_ms,
        }
        headers = {"Content-Type": "application/json", "Idempotency-Key": notice.id, "User-Agent": "wsh"}
        body, timeout_s = json.dumps(told).encode(), self._settings.get_float("notify.timeout_s")
        await asyncio.get_running_loop().run_in_executor(self._aside, post, parts, headers, body, timeout_s)

    async def _type(self, notice: Notice) -> None:
        assert self._wakes is not None
        session = self._registry.find_session(notice.into)
        if session is None or not session.running:
            raise Undelivered(f"there is no session {notice.into}", again=False)
        try:
            await self._wakes.type_now(notice.id, session, notice.line, notice.front)
        except WshError as problem:
            raise Undelivered(problem.message, again=False) from None

    # around

    def _was_seen(self, notice: Notice) -> bool:
        """A person typed there after it was made: they have seen it."""
        session = self.watch.find(notice.sid) if notice.sid else None
        typed = session.input.person_typed if session is not None else None
        return typed is not None and time.time() - (time.monotonic() - typed) > notice.made

    def _found(self) -> None:
        if self.outbox.is_changed and not self._keeping:
            self._commits.start(self._keep())

    async def _keep(self) -> None:
        """What was found is on disk before anybody is told. Whatever comes meanwhile is written together, a moment later."""
        self._keeping = True
        try:
            while self.outbox.is_changed:
                try:
                    await self.outbox.commit()
                except OSError as problem:
                    log.warning("the outbox could not be written: %s", problem)
                    break
                finally:
                    self._tell()
                if self.outbox.is_changed:
                    await asyncio.sleep(_BETWEEN_WRITES_S)
        finally:
            self._keeping = False

    def _tell(self) -> None:
        if self._courier is not None:
            self._courier.wake()
        for listener in list(self._listeners):
            listener()


def _import_push() -> None:
    try:
        import py_vapid
        import pywebpush  # noqa: F401  # only whether it is there

        assert py_vapid
    except ImportError:
        pass
