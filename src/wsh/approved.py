"""What was approved, running in ordinary sessions: the same for the window and for the server.

Between two rooms: `approval` says what may run, `session` runs it. Shows nothing and decides nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from wsh.approval.approver import Order, OutputSink, StartFailed, TypedLineOutcome
from wsh.sandbox.section import SandboxPolicy
from wsh.session.event import Actor, CommandFinished, Destroyed, Exited, Input, SessionEvent
from wsh.session.record.playback import read_output
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec, default_shell, make_sid
from wsh.wire.error import SessionExited, SessionNotFound, WaitTimeout, WshError
from wsh.wire.setting import Settings

_LINE_BYTES = 256 * 1024
"""Most output that is told with the end of a line."""
_REMEMBERED = 1024
_HIDDEN = ("WSH_", "PM_", "ALLOWED_")
"""Variables of our own, which no command inherits."""


class ApprovedSessions:
    """Terminals of approved requests, by the id that the request gave them."""

    def __init__(
        self,
        registry: SessionRegistry,
        settings: Settings,
        *,
        size: Callable[[], tuple[int, int]] = lambda: (24, 80),
        keep_shells: bool = True,
        environ: Mapping[str, str] | None = None,
        sandbox: Callable[[], Awaitable[SandboxPolicy]] | None = None,
    ) -> None:
        """`sandbox` tells which one agents get; without it there is none."""
        self.registry = registry
        self.settings = settings
        self._size = size
        self._keep_shells = keep_shells
        self._sandbox = sandbox
        self._environ = os.environ if environ is None else environ
        self.names: dict[str, str] = {}
        """Terminal id → sid of our session. A session may be renamed, its sid stays."""

    # what commands start from

    def base_environment(self) -> Mapping[str, str]:
        return {k: v for k, v in self._environ.items() if not k.startswith(_HIDDEN) and k != "QT_QPA_PLATFORM"}

    def default_cwd(self) -> str:
        return str(Path.home())

    def make_sid(self) -> str:
        return make_sid()

    def shell(self) -> Sequence[str]:
        return [default_shell(self.settings, self._environ)]

    async def find_sandbox(self) -> str | None:
        """The name of the profile that agents get; None if they get none."""
        return _name(await self._load_sandbox())

    async def _load_sandbox(self) -> SandboxPolicy:
        return SandboxPolicy() if self._sandbox is None else await self._sandbox()

    # running

    def find(self, terminal_id: str) -> Session | None:
        sid = self.names.get(terminal_id)
        if sid is None:
            return None
        return next((session for session in self.registry.list_sessions() if session.sid == sid), None)

    async def start(
        self,
        order: Order,
        sink: OutputSink,
        on_end: Callable[[Session], None] = lambda session: None,
        sid: str | None = None,
    ) -> Session:
        """Run it in a new session; what it prints, and its end, go to `sink`. Raises StartFailed."""
        # Programs begin at the size they are looked at: many draw badly when it changes while they start.
        rows, cols = self._size()
        policy = await self._load_sandbox()
        if not order.leaves and _name(policy) != order.sandbox:
            raise StartFailed("The sandbox that agents get was changed since it was shown.", "changed")
        try:
            session = await self.registry.open_session(
                SessionSpec(
                    sid=sid,
                    argv=order.argv,
                    rows=rows,
                    cols=cols,
                    executable=order.executable,
                    cwd=order.cwd,
                    base_env=dict(order.environment),
                    actor=Actor("agent", order.session_id),
                    sandbox=None if order.leaves else policy.agents,
                    sandbox_policy=policy,
                    # A person said yes to it, so it holds a server that would end; a bare shell does not.
                    keep=self._keep_shells or order.kind == "run",
                )
            )
        except WshError as error:
            raise StartFailed(error.message) from None
        self._follow(order.terminal_id, session, sink, on_end)
        return session

    def adopt(self, terminal_id: str, sid: str, sink: OutputSink) -> bool:
        """Go on with what an earlier server started: all that its session has printed goes to `sink`. False if there is no such session."""
        self.names[terminal_id] = sid
        session = self.find(terminal_id)
        if session is None:
            del self.names[terminal_id]
            return False
        self._follow(terminal_id, session, sink, lambda ended: None)
        return True

    def _follow(self, terminal_id: str, session: Session, sink: OutputSink, on_end: Callable[[Session], None]) -> None:
        self.names[terminal_id] = session.sid
        while len(self.names) > _REMEMBERED:
            del self.names[next(iter(self.names))]
        # What was printed before this line, then everything as it comes.
        early = session.output.read_recent(0) if session.generation else b""
        if early:
            sink.output(early)
        session.output.tap(lambda _offset, data: sink.output(data))

        def hear(event: SessionEvent) -> None:
            if isinstance(event, Exited):
                sink.exited(event.exit_code)
                on_end(session)

        if session.running:
            session.listeners.add(hear)
        else:
            sink.exited(session.exit_code)
            on_end(session)

    async def run(self, order: Order, sink: OutputSink, sid: str | None = None) -> tuple[int, int]:
        session = await self.start(order, sink, sid=sid)
        return session.rows, session.cols

    def find_name(self, terminal_id: str) -> str | None:
        session = self.find(terminal_id)
        return session.name if session is not None else None

    def _get(self, terminal_id: str) -> Session:
        session = self.find(terminal_id)
        if session is None:
            raise SessionNotFound(terminal_id)
        return session

    async def type_line(
        self, terminal_id: str, text: str, wait_s: float, typed: Callable[[], None]
    ) -> TypedLineOutcome:
        actor = Actor("agent", "bridge")
        began = False

        def hear(event: SessionEvent) -> None:
            nonlocal began
            # The very actor of this line: that of another line which waits for the same terminal is equal to it.
            if isinstance(event, Input) and event.actor is actor:
                began = True
                typed()

        try:
            session = self._get(terminal_id)
            stop = session.listeners.add(hear)
            try:
                outcome = await session.run_command(
                    text, actor, max_wait_ms=max(1, round(wait_s * 1000)), max_output_bytes=_LINE_BYTES
                )
            finally:
                stop()
        except WaitTimeout as late:
            if not began:
                raise StartFailed(late.message, "session_taken") from None
            return TypedLineOutcome(command_id=late.facts.get("command_id"))
        except (SessionExited, SessionNotFound) as gone:
            if not began:
                raise StartFailed(gone.message, "terminal_ended") from None
            return TypedLineOutcome("exit", gone.facts.get("exit_code"))
        except WshError as error:
            raise StartFailed(error.message, error.code) from None
        told = outcome.output
        return TypedLineOutcome(
            outcome.finished_by,
            outcome.exit_code,
            told.text if told is not None else None,
            told.omitted_bytes if told is not None else 0,
            outcome.duration_ms,
            outcome.command_id,
        )

    async def await_line(self, terminal_id: str, line: TypedLineOutcome) -> TypedLineOutcome | None:
        """By the shell's own word; a line that no command stands for has no end to wait for."""
        session = self.find(terminal_id)
        if line.command_id is None or session is None:
            return None
        ended = asyncio.Event()

        def hear(event: SessionEvent) -> None:
            if isinstance(event, Exited | Destroyed) or event == CommandFinished(line.command_id or 0):
                ended.set()

        stop = session.listeners.add(hear)
        try:
            command = session.history.get_command(line.command_id)
            if session.running and command.exit_code is None:
                await ended.wait()
            command = session.history.get_command(line.command_id)
            if command.exit_code is None:
                return None
            text = await read_output(session, command, _LINE_BYTES)
        except WshError:
            return None
        finally:
            stop()
        return TypedLineOutcome(
            "command", command.exit_code, text.text, text.omitted_bytes, command.duration_ms, line.command_id
        )

    async def terminate(self, terminal_id: str) -> Sequence[int]:
        """End the whole tree; the pids that survived."""
        session = self.find(terminal_id)
        if session is None or session.child is None:
            return []
        report = await self.registry.keeper.kill_tree(session.child, self.settings.get_int("session.kill_grace_ms"))
        return [pid for pid, _ in report.survivors]


def _name(policy: SandboxPolicy) -> str | None:
    return None if policy.agents is None else policy.agents.name
