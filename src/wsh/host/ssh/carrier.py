"""Calls and streams to one host over ssh. The connection is made again by itself; calls under way go on over the next one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.host.carrier import ForwardedAnswer, ForwardedCall, HostState, ProgressListener, StreamRequest
from wsh.host.ending import end_tasks
from wsh.host.link import PATH, HostLink
from wsh.host.pause import GrowingPause
from wsh.host.ssh.master import SshMaster, SshProblem, SshTarget
from wsh.host.ssh.socket_name import make_name
from wsh.host.websocket import SILENT_S, HandshakeLost, WebSocketStream, open_web_stream, open_websocket
from wsh.wire.error import HostUnreachable, WshError
from wsh.wire.system.task_set import TaskSet

if TYPE_CHECKING:
    from wsh.host.ssh.seen import SeenHost
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.host")


@dataclass(frozen=True)
class SshTiming:
    connect_s: float = 15.0
    """How long one attempt to connect may take."""
    grace_s: float = 10.0
    """How long a call waits for a connection that was cut just now, or is made for the first time."""
    resume_s: float = 60.0
    """How long calls under way wait for the connection to come back."""
    first_pause_s: float = 0.2
    longest_pause_s: float = 60.0
    silent_s: float = SILENT_S


@dataclass
class _Pending:
    """A call that has no answer yet."""

    call: ForwardedCall
    answer: asyncio.Future[ForwardedAnswer]
    on_progress: ProgressListener | None = None
    sent_to: str | None = field(default=None)
    """The server that it was sent to first, by its id; None if it was not sent yet."""


class SshCarrier:
    """`here` is the name that this machine has for itself; `seen` is what an earlier server knew of the host."""

    def __init__(
        self, target: SshTarget, folder: Path, here: str, timing: SshTiming, seen: SeenHost | None = None
    ) -> None:
        self._target = target
        self._folder = folder
        self._here = here
        self._timing = timing
        self._state = HostState(target.host, "ssh", target.target)
        if seen is not None:
            self._state = replace(self._state, since=seen.last_seen, last_seen=seen.last_seen, version=seen.version)
        self._since = time.monotonic()
        self._listeners: list[Callable[[JsonObject], None]] = []
        self._pending: dict[str, _Pending] = {}
        self._link: HostLink | None = None
        self._server_id = ""
        self._master: SshMaster | None = None
        self._changed = asyncio.Event()
        """Set when a connection is there, and when an attempt has failed."""
        self._wanted = asyncio.Event()
        self._task = asyncio.ensure_future(self._keep_connected())

    @property
    def state(self) -> HostState:
        return replace(self._state, last_seen=time.time()) if self._state.online else self._state

    def listen(self, listener: Callable[[JsonObject], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # calls

    async def call(self, call: ForwardedCall, on_progress: ProgressListener | None = None) -> ForwardedAnswer:
        pending = _Pending(call, asyncio.get_running_loop().create_future(), on_progress)
        answered = False
        try:
            async with asyncio.timeout(call.deadline_s):
                link = await self._get_link()
                self._pending[call.id] = pending
                await self._send(pending, link)
                answer = await pending.answer
                answered = True
                return answer
        except TimeoutError:
            raise self._unreachable("no answer in time", sent=pending.sent_to is not None) from None
        finally:
            self._pending.pop(call.id, None)
            link_now = self._link
            if link_now is not None and pending.sent_to is not None:
                # A caller that is cancelled just now is not made to wait for it.
                _running.start(link_now.send_done(call.id) if answered else link_now.send_cancel(call.id))

    async def _send(self, pending: _Pending, link: HostLink) -> None:
        pending.sent_to = pending.sent_to or self._server_id
        await link.send_call(pending.call)

    async def _get_link(self) -> HostLink:
        """The connection, or the one that is being made. Raises HostUnreachable, at once where the host was away before."""
        deadline = self._since + self._timing.grace_s
        self._wanted.set()
        while self._link is None:
            left = deadline - time.monotonic()
            if left <= 0 or (self._state.problem is not None and not self._server_id):
                raise self._unreachable(self._state.problem or "it is being connected to")
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
        return self._link

    def _unreachable(self, problem: str, *, sent: bool = False) -> HostUnreachable:
        state = self.state
        return HostUnreachable(
            state.name,
            problem,
            since=None if state.online else state.since,
            last_seen=state.last_seen,
            made="unknown" if sent else "no",
        )

    def _take_answer(self, id: str, answer: ForwardedAnswer) -> None:
        pending = self._pending.get(id)
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(answer)

    def _take_progress(self, id: str, told: JsonObject) -> None:
        pending = self._pending.get(id)
        if pending is not None and pending.on_progress is not None and not pending.answer.done():
            pending.on_progress(told)

    async def open_stream(self, request: StreamRequest) -> WebSocketStream:
        await self._get_link()
        master = self._master
        if master is None:
            raise self._unreachable("the connection was cut")
        try:
            return await open_web_stream(self._target.host, await master.dial(), request, self._timing.silent_s)
        except (SshProblem, HandshakeLost) as problem:
            raise self._unreachable(str(problem)) from None

    # the connection

    async def _keep_connected(self) -> None:
        pause = GrowingPause(self._timing.first_pause_s, self._timing.longest_pause_s)
        while True:
            problem = "the connection was cut"
            try:
                link = await self._connect()
                pause.reset()
                resent = self._go_online(link)
                # Beside the answers: a host that has many for us takes no call before we took some of them.
                sending = asyncio.ensure_future(self._resend(resent, link))
                try:
                    await link.serve()
                finally:
                    await end_tasks([sending])
            except WshError as failure:
                problem = f"{failure.message}. {failure.hint or ''}".strip()
            except (SshProblem, HandshakeLost, OSError, TimeoutError) as failure:
                problem = str(failure) or "the host's server does not answer"
            except Exception as failure:  # a defect of ours must not end the trying; it is logged whole
                log.exception("the connection to host %s failed", self._target.host)
                problem = type(failure).__name__
            finally:
                await self._disconnect()
            self._go_offline(problem)
            self._wanted.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause.take()):
                    await asyncio.sleep(self._timing.first_pause_s)
                    await self._wanted.wait()

    async def _connect(self) -> HostLink:
        name = make_name(self._target.server, self._target.host, self._target.target)
        master = self._master = SshMaster(self._target, self._folder, name)
        await master.open(self._timing.connect_s, self._timing.silent_s)
        try:
            return await self._open_link(master)
        except HandshakeLost:
            if master.relays or not master.is_alive:
                raise
            master.relays = True  # sshd took the forwarding and refuses what is to go through it
            return await self._open_link(master)

    async def _open_link(self, master: SshMaster) -> HostLink:
        connection = await open_websocket(
            await master.dial(), PATH, timeout_s=self._timing.connect_s, silent_s=self._timing.silent_s
        )
        link = HostLink(connection, self._take_answer, self._tell, self._take_progress)
        await link.greet(self._here, self._timing.connect_s)
        return link

    def _go_online(self, link: HostLink) -> list[_Pending]:
        """The calls under way that go to the host once more."""
        self._server_id = str(link.welcome.get("server_id"))
        self._since = time.monotonic()
        self._state = replace(
            self._state,
            online=True,
            since=time.time(),
            version=str(link.welcome.get("version")),
            protocol=int(str(link.welcome.get("protocol"))),
            problem=None,
            server_id=self._server_id,
        )
        self._link = link
        self._changed.set()
        self._tell({"event": "host_changed"})
        resent = []
        for pending in self._pending.values():
            if pending.sent_to in (None, self._server_id) or pending.call.repeatable:
                resent.append(pending)
            elif not pending.answer.done():
                # Another server than the one that got it: that one cannot be asked any more.
                pending.answer.set_exception(self._unreachable("its server was restarted", sent=True))
        return resent

    async def _resend(self, calls: list[_Pending], link: HostLink) -> None:
        for pending in calls:
            if pending.call.id in self._pending:
                await self._send(pending, link)

    async def _disconnect(self) -> None:
        link, self._link = self._link, None
        master, self._master = self._master, None
        try:
            if link is not None:
                with contextlib.suppress(Exception):
                    await link.aclose()
        finally:  # also where nobody waits any longer for the host's goodbye: no ssh is left behind
            if master is not None:
                await master.aclose()

    def _go_offline(self, problem: str) -> None:
        was = self._state
        if was.online:
            self._since = time.monotonic()
            self._state = replace(was, online=False, since=time.time(), last_seen=time.time(), problem=problem)
            log.info("host %s is out of reach: %s", was.name, problem)
            self._tell({"event": "host_changed"})
        else:
            self._state = replace(was, problem=problem)
        if time.monotonic() - self._since > self._timing.resume_s:
            self._fail_pending(problem)
        self._changed.set()

    def _fail_pending(self, problem: str) -> None:
        for pending in list(self._pending.values()):
            if not pending.answer.done():
                pending.answer.set_exception(self._unreachable(problem, sent=pending.sent_to is not None))

    def _tell(self, news: JsonObject) -> None:
        for listener in list(self._listeners):
            listener(news)

    async def aclose(self) -> None:
        """Idempotent. Calls under way fail."""
        await end_tasks([self._task])
        await self._disconnect()
        self._fail_pending("the host was removed")


_running = TaskSet()
