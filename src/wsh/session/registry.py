"""All sessions of one server: making, finding, naming, ending and bringing them back.

The registry owns the keeper's client and the pump. Closing it leaves every child to the keeper; stopping it ends them all.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from wsh.process import ChildHandle, ExitStatus, JournalSpec, KeeperClient, KillReport, SpawnSpec
from wsh.sandbox.hold import Sandboxes, SandboxPlan
from wsh.session.command.command import CommandLog
from wsh.session.confine import confine, hold
from wsh.session.event import Actor, Listeners
from wsh.session.housekeeping import Housekeeping
from wsh.session.input.session_input import InputLimits
from wsh.session.output.pump import OutputPump
from wsh.session.record.store import SessionFolder
from wsh.session.recovery.death import Deaths, tell_stuck
from wsh.session.recovery.note import Notes
from wsh.session.recovery.restore import restore_all
from wsh.session.recovery.watchdog import Watchdog
from wsh.session.session import Session
from wsh.session.shell.injection import NONCE_FD, SCRIPTS, Injection, ShellName, plan_injection
from wsh.session.shell.login_path import LoginPath
from wsh.session.spec import SessionLaunch, SessionSpec, add_login_path, make_sid, prepare
from wsh.terminal import Terminal, TerminalLimits
from wsh.wire.error import (
    KeeperGone,
    MaxSessionsReached,
    SessionNameTaken,
    SessionNotFound,
    ShuttingDown,
    WshError,
)
from wsh.wire.name import check_session_name, make_session_name
from wsh.wire.setting import Settings
from wsh.wire.system.place import Places, ensure_private
from wsh.wire.system.shortage import find_shortage
from wsh.wire.system.task_set import TaskSet

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionCreated:
    session: Session


@dataclass(frozen=True)
class SessionRenamed:
    session: Session
    old: str


@dataclass(frozen=True)
class SessionDestroyed:
    name: str
    sid: str
    exit_code: int | None


LifecycleEvent: TypeAlias = SessionCreated | SessionRenamed | SessionDestroyed


def terminal_limits(settings: Settings) -> TerminalLimits:
    return TerminalLimits(scrollback_lines=settings.get_int("session.scrollback_lines"))


def input_limits(settings: Settings) -> InputLimits:
    return InputLimits(
        settings.get_int("session.input_bytes"),
        settings.get_int("session.input_timeout_ms"),
        settings.get_int("session.line_wait_ms"),
        settings.get_float("session.engine_timeout_s"),
        settings.get_int("session.first_prompt_ms"),
    )


def make_log(shell: ShellName, nonce: str, settings: Settings) -> CommandLog:
    return CommandLog(nonce, shell, settings.get_int("session.command_history"))


class SessionRegistry:
    """Use `await SessionRegistry.open(...)`; then `aclose` or `stop`."""

    def __init__(self, keeper: KeeperClient, places: Places, settings: Settings) -> None:
        self.keeper = keeper
        watchdog = Watchdog(settings.get_float("session.engine_timeout_s"), lambda: tell_stuck(places))
        self.notes = Notes(places.engine_note, watchdog)
        self.deaths = Deaths(places)
        self.places = places
        self.settings = settings
        self.sandboxes = Sandboxes(places)
        self.lifecycle: Listeners[LifecycleEvent] = Listeners()
        self.pump = OutputPump(asyncio.get_running_loop())
        self.heard: dict[str, int] = {}
        self.restored: list[str] = []
        """What was damaged or lost, at the restore or since, for `wsh status`."""
        self._renewal: asyncio.Task[None] | None = None
        self._by_name: dict[str, Session] = {}
        self._by_child: dict[int, Session] = {}
        self._reserved: set[str] = set()
        self._tasks = TaskSet()
        self._housekeeping = Housekeeping(self, settings)
        self._login_path = LoginPath(settings.get_int("session.login_path_wait_ms") / 1000)
        self._closing = False
        self._gate: Callable[[Session, Actor, bytes], None] | None = None
        self.before_removal: list[Callable[[Session], Awaitable[None]]] = []
        """Awaited before a session is removed with what it printed. Each has an end, and must not raise."""

    @classmethod
    async def open(cls, places: Places, settings: Settings, heard: Mapping[str, int] | None = None) -> SessionRegistry:
        """Connect to the keeper (or start one), take over its children, restore what is on disk.

        `heard` says by session up to which offset the messages of its programs were passed on.
        """
        ensure_private(places.runtime)
        ensure_private(places.state)
        try:
            ensure_private(places.sessions.parent)
            ensure_private(places.sessions)
        except OSError as problem:  # sessions work without; each tries again
            if find_shortage(problem) is None:
                raise
            log.warning("no folder for journals: %s", problem)
        keeper = await KeeperClient.open(places)
        registry = cls(keeper, places, settings)
        registry.heard = dict(heard or {})
        try:
            registry.restored = await restore_all(registry)
            registry._by_name = dict(sorted(registry._by_name.items(), key=lambda one: one[1].created))
            running = {session.sid for session in registry.list_sessions() if session.running}
            await asyncio.to_thread(registry.sandboxes.ledger.sweep, running)
            keeper.on_dirty = registry._on_dirty
            keeper.on_lost = registry._on_keeper_lost
            for session in registry.list_sessions():
                registry._watch(session)
            registry.pump.wake(session.output for session in registry._by_name.values())
            registry._housekeeping.start()
        except BaseException:
            await keeper.aclose()
            registry.notes.close()
            raise
        return registry

    def set_gate(self, gate: Callable[[Session, Actor, bytes], None]) -> None:
        """Ask `gate` before any input is typed."""
        self._gate = gate
        for session in self._by_name.values():
            session.input.gate = gate

    # finding

    def get_session(self, name: str) -> Session:
        session = self._by_name.get(name)
        if session is None:
            raise SessionNotFound(name)
        return session

    def find_session(self, name: str) -> Session | None:
        return self._by_name.get(name)

    def list_sessions(self, tags: Iterable[str] | None = None) -> list[Session]:
        """All sessions in the order they were made; with `tags`, those that have any of them."""
        wanted = set(tags) if tags is not None else None
        return [s for s in self._by_name.values() if wanted is None or wanted & set(s.tags)]

    def __len__(self) -> int:
        return len(self._by_name)

    def list_warnings(self) -> list[str]:
        """What a person should look at: damage of the past, and journals that the disk refuses."""
        left_out = [f"session {session.name}: {session.notice}" for session in self._by_name.values() if session.notice]
        stopped = [
            f"session {session.name}: what it prints is not kept on disk, because the disk refused it; make room"
            for session in self._by_name.values()
            if session.journal_state == "full"
        ]
        return [*self.restored, *left_out, *stopped]

    # making

    async def open_session(self, spec: SessionSpec) -> Session:
        """Start a session. Raises before anything exists if the spec cannot be; nothing is left half-made."""
        if self._closing:
            raise ShuttingDown
        if self._renewal is not None:
            await asyncio.shield(self._renewal)
        spec = await add_login_path(spec, self.settings, self._login_path)
        launch = prepare(spec, self.settings)
        marks = self._plan_marks(spec, launch)
        limit = self.settings.get_int("server.max_sessions")
        if len(self._by_name) + len(self._reserved) >= limit:
            raise MaxSessionsReached("sessions", limit, "server.max_sessions")
        name = spec.name or make_session_name(set(self._by_name) | self._reserved)
        if name in self._by_name or name in self._reserved:
            raise SessionNameTaken(name)
        self._reserved.add(name)
        sid = spec.sid or make_sid()
        folder = SessionFolder(self.places.sessions / sid)
        plan: SandboxPlan | None = None
        try:
            plan = await self._hold(spec, launch, marks, sid, name)
            holding = None if plan is None else plan.holding
            if holding is not None:
                launch = replace(launch, cwd=holding.folder)
            self._make_folder(folder)
            start = SpawnSpec(
                argv=launch.argv if marks is None else marks.argv,
                path=launch.executable,
                cwd=launch.cwd,
                env=(launch.env if marks is None else marks.env) | {"WSH_SESSION": name},
                extra_fds={} if marks is None else {NONCE_FD: marks.content},
                rows=launch.rows,
                cols=launch.cols,
                ring_bytes=self.settings.get_int("session.ring_bytes"),
                journal=self._journal_spec(folder),
                meta={
                    "sid": sid,
                    "name": name,
                    "marks": marks and [marks.shell, marks.nonce],
                    "sandbox": holding and holding.to_facts(),
                },
            )
            child = await self.keeper.spawn(start if plan is None else confine(start, plan))
            session = Session(
                sid=sid,
                name=name,
                launch=launch,
                terminal=Terminal(launch.rows, launch.cols, terminal_limits(self.settings)),
                folder=folder,
                keeper=self.keeper,
                child=child,
                actor=spec.actor,
                keep=spec.keep,
                limits=input_limits(self.settings),
                commands=make_log(marks.shell, marks.nonce, self.settings) if marks is not None else None,
                notes=self.notes,
                holding=holding,
            )
            session.memory.remember()
        except BaseException:
            folder.remove()
            if plan is not None:
                await asyncio.to_thread(self.sandboxes.release, sid)
            raise
        finally:
            if plan is not None:
                plan.close()
            self._reserved.discard(name)
        self.adopt(session)
        self._watch(session)
        self.pump.wake((session.output,))
        self._housekeeping.touched(session)  # what it printed before it was adopted rang for nobody
        self._housekeeping.describe(session)
        self.lifecycle.tell(SessionCreated(session))
        return session

    async def _hold(
        self, spec: SessionSpec, launch: SessionLaunch, marks: Injection | None, sid: str, name: str
    ) -> SandboxPlan | None:
        """How the session is held; None for an open one."""
        if spec.sandbox is None:
            return None
        argv, env = (launch.argv, launch.env) if marks is None else (marks.argv, marks.env)
        changed = {key for key, value in env.items() if launch.env.get(key) != value}
        plan = functools.partial(
            self.sandboxes.plan,
            spec.sandbox,
            spec.sandbox_policy,
            id=sid,
            path=launch.executable,
            argv=argv,
            env={**env, "WSH_SESSION": name},
            given={*spec.env, *launch.agent_defaults, *changed},
            cwd=launch.cwd,
            needed=[str(SCRIPTS)] if marks is not None else [],
        )
        return await hold(self.sandboxes, plan)

    def _plan_marks(self, spec: SessionSpec, launch: SessionLaunch) -> Injection | None:
        wanted = self.settings.get_bool("session.shell_integration") if spec.integration is None else spec.integration
        return plan_injection(launch.argv, launch.executable, launch.env) if wanted else None

    def _journal_spec(self, folder: SessionFolder) -> JournalSpec | None:
        """Also for a folder that could not be made: the keeper tries again and again, as with a disk that fills later."""
        if not self.settings.get_bool("journal.enabled"):
            return None
        return JournalSpec(
            str(folder.path),
            segment_bytes=self.settings.get_int("journal.segment_bytes"),
            session_bytes=self.settings.get_int("journal.session_bytes"),
        )

    def _make_folder(self, folder: SessionFolder) -> None:
        """A disk that refuses stops journaling, not the terminal."""
        if self.settings.get_bool("journal.enabled"):
            try:
                folder.create()
            except OSError as problem:
                log.warning("no journal for a new session: %s", problem)

    def adopt(self, session: Session) -> None:
        """Put a session on the list: a new one, or one that was restored."""
        self._by_name[session.name] = session
        session.input.gate = self._gate
        if session.child is not None:
            self._by_child[session.child.id] = session

    def rename(self, name: str, new: str) -> Session:
        session = self.get_session(name)
        check_session_name(new)
        if new == name:
            return session
        if new in self._by_name or new in self._reserved:
            raise SessionNameTaken(new)
        # Rebuilt rather than popped and set, so that the order of the list stays that of creation.
        self._by_name = {new if s is session else n: s for n, s in self._by_name.items()}
        session.rename(new)
        self._housekeeping.describe(session)
        self.lifecycle.tell(SessionRenamed(session, name))
        return session

    # ending

    async def kill(self, name: str) -> KillReport:
        """End the session's whole tree and forget it: afterwards neither process nor file of it is left.

        It stays on the list if its own program cannot be ended, so that it can be seen and the kill tried again.
        """
        return await self.destroy(self.get_session(name))

    async def destroy(self, session: Session) -> KillReport:
        report = KillReport((), 0, (), 0.0)
        if session.child is not None:
            report = await self.keeper.kill_tree(session.child, self.settings.get_int("session.kill_grace_ms"))
            if report.survivors:
                log.warning("killing session %s left processes alive: %s", session.name, report.survivors)
            child = session.child
            if child is not None and child.running and child.pid in (pid for pid, _ in report.survivors):
                return report
        if self._by_name.get(session.name) is session:
            for take_leave in self.before_removal:
                await take_leave(session)
        if self._by_name.get(session.name) is session:
            del self._by_name[session.name]
            self._housekeeping.forget(session)
            await self._let_go(session)
            session.close()
            await self._release(session)
            await asyncio.to_thread(session.folder.remove)
            self.lifecycle.tell(SessionDestroyed(session.name, session.sid, session.exit_code))
        return report

    async def _let_go(self, session: Session) -> None:
        child = session.child
        if child is not None:
            self.pump.forget(session.output)
            self._by_child.pop(child.id, None)
            session.release_child()  # at once, so that nobody else lets go of it too
            await session.settle()
            await self.keeper.forget(child)

    def _on_dirty(self, children: Sequence[ChildHandle]) -> None:
        sessions = [s for c in children if (s := self._by_child.get(c.id)) is not None]
        self.pump.wake([session.output for session in sessions])
        for session in sessions:
            self._housekeeping.touched(session)

    def _watch(self, session: Session) -> None:
        child = session.child
        if child is None:
            return

        def ended(future: asyncio.Future[ExitStatus]) -> None:
            if not future.cancelled() and future.exception() is None and not self._closing:
                self._tasks.start(self._end(session, future.result()))

        child.exited.add_done_callback(ended)

    async def _end(self, session: Session, status: ExitStatus) -> None:
        """Parse what is left, tell everyone, write it down, and let the keeper forget."""
        await self._drain(session)
        session.finish(status.shell_code, status.signal)
        session.memory.remember()
        await self._housekeeping.settle(session)
        await self._release(session)

    async def _release(self, session: Session) -> None:
        """Take away what a sandbox had made in the file system."""
        if session.holding is not None:
            await asyncio.to_thread(self.sandboxes.release, session.sid)

    async def _drain(self, session: Session) -> None:
        while session.output.backlog() and session.child is not None:
            session.output.pump(1 << 18)
            await asyncio.sleep(0)

    async def release_ended(self, session: Session) -> None:
        """Nothing can print any more (end of file on the pty): give ring and descriptor back."""
        if not session.running:
            await self._let_go(session)

    # when the keeper dies

    def _on_keeper_lost(self, error: KeeperGone) -> None:
        if not self._closing and not self.keeper.displaced:
            self._renewal = self._tasks.start(self._renew_keeper())

    async def _renew_keeper(self) -> None:
        """What ran under the keeper has lost its terminal. Say that it ended, keep what it printed, start a new keeper."""
        ended = [session for session in self._by_name.values() if session.child is not None]
        for session in ended:
            await self._drain(session)
            assert session.child is not None
            self.pump.forget(session.output)
            self._by_child.pop(session.child.id, None)
            session.release_child()
        lost = [session for session in ended if session.running]
        for session in lost:
            session.finish(None, None)
        try:
            await self.keeper.reopen()
        except WshError as problem:
            log.error("no new keeper: %s", problem)
            self.restored.append(f"the keeper died and cannot be started again: {problem}")
            for session in lost:
                await self._release(session)
            return
        names = ", ".join(session.name for session in lost) or "none"
        said = f"the keeper died, and with it the programs of these sessions: {names}; what they printed is kept"
        log.error("%s; a new keeper runs", said)
        self.restored.append(said)
        for session in lost:
            await self._release(session)
            await self._housekeeping.settle(session)

    # closing

    async def aclose(self) -> None:
        """Leave every session to the keeper and the next server. Idempotent."""
        if self._closing:
            return
        self._closing = True
        await self._login_path.aclose()
        await self._housekeeping.aclose()
        for session in self._by_name.values():
            await session.settle()
        self.pump.close()
        await self._tasks.aclose()
        for session in self._by_name.values():
            session.close()
        await self.keeper.aclose()
        self.sandboxes.close()
        self.notes.close()

    async def stop(self) -> None:
        """End every session and the keeper."""
        self._closing = True
        await self._login_path.aclose()
        await self._housekeeping.aclose(snapshots=False)
        self.pump.close()
        for session in self._by_name.values():
            session.release_child()
        await self.keeper.stop(self.settings.get_int("session.kill_grace_ms"))
        for session in list(self._by_name.values()):
            session.close()
            await self._release(session)
            await asyncio.to_thread(session.folder.remove)
            self.lifecycle.tell(SessionDestroyed(session.name, session.sid, session.exit_code))
        self._by_name.clear()
        await self._tasks.aclose()
        self.sandboxes.close()
        self.notes.close()
