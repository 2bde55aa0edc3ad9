"""What is done for sessions in the background: snapshots, descriptions, retention, the common cap on scrollback.

It sleeps while nothing changes: a thousand idle sessions cost no wake-ups. A disk that refuses a write is noticed, said once, and
tried again later; no terminal waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from wsh.session.record.store import TakenSnapshot
from wsh.wire.error import WshError
from wsh.wire.setting import Settings
from wsh.wire.system.task_set import TaskSet

if TYPE_CHECKING:
    from wsh.session.registry import SessionRegistry
    from wsh.session.session import Session

log = logging.getLogger(__name__)

_CAP_SLACK = 20
_DESCRIBE_S = 0.03
_TICK_S = 0.5
_RETENTION_EVERY_S = 60.0
_CAP_EVERY_BYTES = 32 << 20


class Housekeeping:
    def __init__(self, registry: SessionRegistry, settings: Settings) -> None:
        self._registry = registry
        self._snapshot_bytes = settings.get_int("journal.snapshot_bytes")
        self._interval_s = settings.get_float("journal.snapshot_interval_s")
        self._journaled = settings.get_bool("journal.enabled")
        self._cap_bytes = settings.get_int("session.scrollback_total_bytes")
        self._retention_s = settings.get_int("session.retention_s")
        self._retention_bytes = settings.get_int("session.retention_bytes")
        self._changed: dict[Session, float] = {}
        """Sessions with output since their last snapshot, and since when."""
        self._busy: set[Session] = set()
        self._writes = TaskSet()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._complained = False
        self._next_retention = 0.0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="housekeeping")

    def touched(self, session: Session) -> None:
        """Notes that `session` printed something. Called for every turn of the pump, so it is quick."""
        if session not in self._changed:
            self._changed[session] = time.monotonic()
            self._wake.set()
        since = session.generation - session.snapshot_offset
        if since >= self._snapshot_bytes and session not in self._busy and self._journaled:
            self._begin_snapshot(session)

    def describe(self, session: Session) -> None:
        """Write the session's description, soon and in a thread."""
        if self._journaled:
            self._writes.start(self._describe_soon(session))

    def forget(self, session: Session) -> None:
        """`session` is being killed: nothing more is to be stored of it."""
        self._changed.pop(session, None)
        self._busy.discard(session)

    async def settle(self, session: Session) -> None:
        """An ended session: its last snapshot and description go to disk now. One that was killed leaves nothing there."""
        if self._journaled and not session.closed:
            await self._save(session)
            await self._write_meta(session)
        self._wake.set()

    async def aclose(self, *, snapshots: bool = True) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if snapshots and self._journaled:
            for session in list(self._changed):
                await self._save(session)
        await self._writes.wait()

    async def _run(self) -> None:
        """Goes on whatever fails: without it nothing would be stored, aged or capped any more."""
        self._next_retention = time.monotonic()
        while True:
            try:
                await self._look_after(time.monotonic())
                if not self._changed and not self._has_loose_ends():
                    await self._rest()
            except Exception:
                log.exception("housekeeping failed; it goes on")
            await asyncio.sleep(_TICK_S)

    async def _look_after(self, now: float) -> None:
        if now >= self._next_retention:
            self._next_retention = now + _RETENTION_EVERY_S
            await self._retain()
        self._snapshot_quiet(now)
        self._cap()
        await self._make_missing_folders()
        await self._release()

    async def _rest(self) -> None:
        """Wait for a change, or for the next look at what has ended."""
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._next_retention - time.monotonic())):
                await self._wake.wait()

    # snapshots

    def _snapshot_quiet(self, now: float) -> None:
        for session, since in list(self._changed.items()):
            if session.closed or session.generation == session.snapshot_offset or not self._journaled:
                del self._changed[session]
            elif now - since >= self._interval_s and session not in self._busy and not session.output.backlog():
                self._begin_snapshot(session)

    def _begin_snapshot(self, session: Session) -> None:
        self._changed.pop(session, None)
        self._busy.add(session)
        # Marked now, so that the next one is due a full distance on, also if this write fails.
        session.snapshot_offset = session.generation
        snapshot = self._take_snapshot(session)
        if snapshot is not None:
            self._writes.start(self._write_snapshot(session, snapshot))

    async def _save(self, session: Session) -> None:
        self._changed.pop(session, None)
        if session.closed:
            return
        session.snapshot_offset = session.generation
        snapshot = self._take_snapshot(session)
        if snapshot is not None:
            await self._write_snapshot(session, snapshot)

    def _take_snapshot(self, session: Session) -> TakenSnapshot | None:
        """None in a state that cannot be stored: the last snapshot and the journal hold everything until then."""
        try:
            return session.memory.make_snapshot()
        except WshError as problem:
            log.info("no snapshot of session %s now: %s", session.name, problem)
            self._busy.discard(session)
            return None
        except BaseException:
            self._busy.discard(session)
            raise

    async def _write_snapshot(self, session: Session, snapshot: TakenSnapshot) -> None:
        try:
            await asyncio.to_thread(session.folder.write_snapshot, snapshot)
            self._complained = False
        except OSError as problem:
            self._complain(session, problem)
        finally:
            self._busy.discard(session)

    async def _describe_soon(self, session: Session) -> None:
        """Delayed, so that it does not slow session creation; until then the keeper knows all that a restart needs."""
        await asyncio.sleep(_DESCRIBE_S)
        if not session.closed:
            await self._write_meta(session)

    async def _write_meta(self, session: Session) -> None:
        meta = session.memory.describe()
        try:
            await asyncio.to_thread(session.folder.write_meta, meta)
        except OSError as problem:
            self._complain(session, problem)

    def _complain(self, session: Session, problem: OSError) -> None:
        if isinstance(problem, FileNotFoundError):
            return  # the session was killed meanwhile, its folder is gone
        if not self._complained:
            log.warning("session %s cannot be written to disk: %s", session.name, problem)
        self._complained = True

    # limits

    def _cap(self) -> None:
        """Drop the oldest lines of the least used sessions until all scrollbacks fit."""
        sessions = self._registry.list_sessions()
        sizes = {s: s.terminal.memory_bytes for s in sessions}
        total = sum(sizes.values())
        if total <= self._cap_bytes:
            return
        goal = (
            self._cap_bytes - self._cap_bytes // _CAP_SLACK
        )  # a little below, so that a flood does not bring us here each tick
        for session in sorted(sessions, key=lambda s: s.last_activity):
            if total <= self._cap_bytes:
                break
            terminal = session.terminal
            history = terminal.total_lines - terminal.first_line - terminal.rows
            excess = min(1.0, (total - goal) / max(1, sizes[session]))
            dropped = terminal.trim_scrollback(int(history * (1.0 - excess)))
            total -= sizes[session] - terminal.memory_bytes
            if dropped:
                log.warning("%d old lines of %s dropped: all scrollbacks are over the cap", dropped, session.name)

    async def _retain(self) -> None:
        """End the retention of exited sessions: by age, then by size, oldest first."""
        ended = [s for s in self._registry.list_sessions() if not s.running and s.child is None]
        ended.sort(key=lambda s: -s.ended_s)
        sizes = {s: await asyncio.to_thread(s.folder.size_bytes) for s in ended}
        total = sum(sizes.values())
        for session in ended:
            if session.ended_s < self._retention_s and total <= self._retention_bytes:
                continue
            total -= sizes[session]
            await self._registry.destroy(session)

    async def _make_missing_folders(self) -> None:
        """Sessions that began on a full disk get their folder when there is room, and a snapshot of all they printed."""
        for session in self._registry.list_sessions():
            if session.folder.missing and not session.closed:
                try:
                    await asyncio.to_thread(session.folder.create)
                except OSError:
                    return
                session.snapshot_offset = -1
                self.describe(session)
                self.touched(session)

    def _has_loose_ends(self) -> bool:
        return any(s.folder.missing for s in self._registry.list_sessions()) or any(
            not s.running and s.child is not None and s.child.ring.eof for s in self._registry.list_sessions()
        )

    async def _release(self) -> None:
        for session in self._registry.list_sessions():
            child = session.child
            if not session.running and child is not None and child.ring.eof and not session.output.backlog():
                if self._journaled and session.generation != session.snapshot_offset:
                    await self._save(session)
                await self._registry.release_ended(session)
