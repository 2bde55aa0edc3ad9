"""From sessions to transcripts: listens to what sessions tell and puts their commands into the store.

A command is put when it has ended, and while it runs whenever somebody searches. A program without shell integration
becomes documents by stretches of its output. Output comes from the session, rendered; what was typed at a hidden
prompt is not in it.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable

from wsh.session import event as ev
from wsh.session.command.command import Command
from wsh.session.command.output import render, rendering
from wsh.session.record.journal import Journal
from wsh.session.record.playback import journal_up_to, read_output
from wsh.session.registry import LifecycleEvent, SessionCreated, SessionRegistry, SessionRenamed
from wsh.session.session import Session
from wsh.wire.system.shortage import find_shortage
from wsh.wire.system.task_set import TaskSet
from wsh.workspace.transcript.transcript import MAX_TEXT_BYTES, Transcript, TranscriptStore

log = logging.getLogger(__name__)

STRETCH_BYTES = 64 * 1024
_HALF = MAX_TEXT_BYTES // 2
_SOON_S = 0.25
_AGAIN_S = 5.0
"""Until the next try after the disk had no room."""
_AT_ONCE = 64
"""Documents that are put together."""


class SessionTranscripts:
    """A `TranscriptSource` over the sessions of one server. `start` it after the sessions are restored."""

    def __init__(
        self, registry: SessionRegistry, store: TranscriptStore, *, enabled: bool, close_s: float = 5.0
    ) -> None:
        """`close_s` is how long the end may take for what is still to be put."""
        self._close_s = close_s
        self._registry = registry
        self._store = store
        self._enabled = enabled
        self._commands: dict[str, set[int]] = {}  # changed, by session id
        self._stretches: dict[str, int] = {}  # offset from which the output is new, by session id
        self._under_way: tuple[dict[str, set[int]], dict[str, int]] = ({}, {})  # the same of what is being put
        self._removed: set[str] = set()  # ids of sessions that were removed since that began
        self._began: dict[str, float] = {}  # when a stretch was first seen, by key
        self._stop: list[Callable[[], None]] = []
        self._follows: dict[str, Callable[[], None]] = {}  # ends listening, by session id
        self._soon: asyncio.TimerHandle | None = None
        self._lock = asyncio.Lock()
        self._tasks = TaskSet()
        self.warning: str | None = None
        """Why what is printed now cannot be searched, while that is so."""

    @property
    def enabled(self) -> bool:
        return self._enabled

    async def start(self) -> None:
        """Follow all sessions, and begin to store the transcripts of those that ended before. That may take minutes and delays no other work."""
        if not self._enabled:
            return
        self._stop.append(self._registry.lifecycle.add(self._on_lifecycle))
        self._registry.before_removal.append(self._put_last)
        self._stop.append(lambda: self._registry.before_removal.remove(self._put_last))
        known, reached = await self._list_known()
        for session in self._registry.list_sessions():
            self._follow(session)
            self._note_all(session, known, reached.get(session.sid, 0))
        self._flush()

    def _note_all(self, session: Session, known: set[str], reached: int) -> None:
        """What a session has told before it was followed is new, but for what is stored already."""
        fresh = {c.id for c in session.history.list_commands() if _key(session, c) not in known}
        if fresh:
            self._commands.setdefault(session.sid, set()).update(fresh)
        if session.commands is None and session.generation:
            self._stretches[session.sid] = max(Journal(session.folder.path).oldest, reached)

    async def _list_known(self) -> tuple[set[str], dict[str, int]]:
        """What is stored already: keys of what has ended, and the last stretch of each session. Nothing, if the disk has no room for a store."""
        try:
            known = await asyncio.to_thread(self._store.list_finished)
            stretches = await asyncio.to_thread(self._store.list_stretches)
        except (OSError, sqlite3.Error) as problem:
            if find_shortage(problem, self._store.path) is None:
                raise
            return set(), {}
        reached: dict[str, int] = {}
        for key in stretches:
            sid, _, start = key.rpartition("@")
            reached[sid] = max(int(start), reached.get(sid, 0))
        return known, reached

    async def aclose(self) -> None:
        """Put what is still new. What that has no time for is left out; of a session that goes on, the next server puts it."""
        for stop in (*self._stop, *self._follows.values()):
            stop()
        if self._soon is not None:
            self._soon.cancel()
        if self._enabled:
            try:
                async with asyncio.timeout(self._close_s):
                    await self._refresh_quietly()
            except TimeoutError:
                log.warning("the transcripts of %d sessions are not whole", len({*self._commands, *self._stretches}))
            if self._soon is not None:
                self._soon.cancel()
        await self._tasks.aclose()

    # listening

    def _on_lifecycle(self, event: LifecycleEvent) -> None:
        if isinstance(event, SessionCreated):
            self._follow(event.session)
            self._note_all(event.session, set(), 0)  # its program may have printed before this was told
        elif isinstance(event, SessionRenamed):
            session = event.session
            self._commands.setdefault(session.sid, set()).update(c.id for c in session.history.list_commands())
            if session.commands is None:
                self._stretches[session.sid] = Journal(session.folder.path).oldest

    def _follow(self, session: Session) -> None:
        self._follows[session.sid] = session.listeners.add(lambda event: self._on_event(session, event))

    def _on_event(self, session: Session, event: ev.SessionEvent) -> None:
        if isinstance(event, ev.CommandStarted | ev.CommandFinished):
            self._commands.setdefault(session.sid, set()).add(event.id)
            if isinstance(event, ev.CommandFinished):
                self._flush_soon()
        elif isinstance(event, ev.Output):
            if session.commands is None:
                self._stretches.setdefault(session.sid, event.start)
            elif session.commands.current is not None:
                self._commands.setdefault(session.sid, set()).add(session.commands.current.id)
        elif isinstance(event, ev.Exited):
            self._flush_soon()
        elif isinstance(event, ev.Destroyed):
            # A caller that can still reach us holds the session in memory.
            self._follows.pop(session.sid, lambda: None)()

    def _flush_soon(self, after_s: float = _SOON_S) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(after_s, self._flush)

    def _flush(self) -> None:
        self._soon = None
        self._tasks.start(self._refresh_quietly())

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except Exception as problem:
            shortage = find_shortage(problem, self._store.path)
            if shortage is None:
                log.exception("transcripts could not be written")
                return
            if self.warning is None:
                log.warning("transcripts could not be written: %s", shortage.message)
            self.warning = f"what sessions print cannot be searched for now: {shortage.message} {shortage.hint}"
            self._flush_soon(_AGAIN_S)

    # putting

    async def refresh(self) -> None:
        """Put what changed since the last time. Quick when nothing has."""
        async with self._lock:  # also to wait for a flush that is under way
            if not self._commands and not self._stretches:
                return
            self._under_way = commands, stretches = self._commands, self._stretches
            self._commands, self._stretches = {}, {}
            self._removed.clear()
            try:
                await self._put(commands, stretches)
            except asyncio.CancelledError:
                self._flush_soon()  # who asked cannot wait, and the next one may not be able to either
                raise
            finally:
                self._take_back(commands, stretches)
                self._under_way = {}, {}
            self.warning = None

    def _take_back(self, commands: dict[str, set[int]], stretches: dict[str, int]) -> None:
        """What could not be put is new still, for the next time."""
        for sid, numbers in commands.items():
            self._commands.setdefault(sid, set()).update(numbers)
        for sid, start in stretches.items():
            self._stretches[sid] = min(start, self._stretches.get(sid, start))

    async def _put(self, commands: dict[str, set[int]], stretches: dict[str, int]) -> None:
        """One session after the other. What has been put, or is no longer there, is taken out of both."""
        documents: dict[str, list[Transcript]] = {}
        for session in self._registry.list_sessions():
            sid = session.sid
            if sid not in commands and sid not in stretches:
                continue
            documents[sid] = await self._make_documents(session, commands.get(sid, set()), stretches.get(sid))
            if sum(map(len, documents.values())) >= _AT_ONCE:
                await self._store_all(documents, commands, stretches)
        await self._store_all(documents, commands, stretches)
        commands.clear()
        stretches.clear()

    async def _make_documents(self, session: Session, numbers: set[int], since: int | None) -> list[Transcript]:
        documents: list[Transcript] = []
        for number in sorted(numbers):
            command = None if session.commands is None else session.commands.find(number)
            if command is not None:
                documents.append(await self._command_document(session, command))
        if since is not None:
            documents += await self._stretch_documents(session, since)
        return documents

    async def _store_all(
        self, documents: dict[str, list[Transcript]], commands: dict[str, set[int]], stretches: dict[str, int]
    ) -> None:
        kept = [each for sid, made in documents.items() if sid not in self._removed for each in made]
        await asyncio.to_thread(self._store.put, kept)
        for sid in documents:
            commands.pop(sid, None)
            stretches.pop(sid, None)
        documents.clear()

    async def _put_last(self, session: Session) -> None:
        """The session is removed with its journal: put what is new of it, as far as there is time. Waits for no others."""
        sid = session.sid
        self._removed.add(sid)
        noted = ((self._commands, self._stretches), self._under_way)
        numbers = {number for commands, _ in noted for number in commands.pop(sid, ())}
        starts = [start for _, stretches in noted if (start := stretches.pop(sid, None)) is not None]
        if not numbers and not starts:
            return
        try:
            async with asyncio.timeout(self._close_s):
                documents = await self._make_documents(session, numbers, min(starts, default=None))
                await asyncio.to_thread(self._store.put, documents)
        except TimeoutError:
            log.warning("the transcripts of session %s are not whole", session.name)
        except Exception as problem:
            shortage = find_shortage(problem, self._store.path)
            why = log.exception if shortage is None else log.warning
            why("the last transcripts of session %s could not be written", session.name)

    async def replay(self) -> None:
        """Put everything that the sessions still hold."""
        for session in self._registry.list_sessions():
            if session.commands is not None:
                self._commands.setdefault(session.sid, set()).update(c.id for c in session.history.list_commands())
            else:
                self._stretches[session.sid] = Journal(session.folder.path).oldest
        await self.refresh()

    async def _command_document(self, session: Session, command: Command) -> Transcript:
        size = (session.generation if command.end is None else command.end) - command.start
        if size <= 2 * MAX_TEXT_BYTES:
            text = (await read_output(session, command, MAX_TEXT_BYTES)).text
        else:
            text = await self._ends(session, command.start, command.start + size, command.rows, command.cols)
        return Transcript(
            key=_key(session, command),
            session=session.name,
            command=command.command,
            output=text,
            cwd=command.cwd or session.start_cwd,
            started=command.started or session.created,
            exit_code=command.exit_code,
            duration_ms=None if command.duration_ms is None else round(command.duration_ms),
        )

    async def _ends(self, session: Session, start: int, end: int, rows: int, cols: int) -> str:
        """Beginning and end of a long output; the middle is not worth reading a journal of megabytes for."""
        journal = await journal_up_to(session, end)
        parts = []
        for first, last in ((start, start + _HALF), (end - _HALF, end)):
            data, _ = await asyncio.to_thread(journal.read_bytes, first, last)
            with rendering(session.output, first, last):
                parts.append((await render(data, rows, cols, MAX_TEXT_BYTES)).text)
        return f"{parts[0]}\n[… {end - start - 2 * _HALF} bytes left out …]\n{parts[1]}"

    async def _stretch_documents(self, session: Session, since: int) -> list[Transcript]:
        """The output of a program without marks, cut at multiples of STRETCH_BYTES."""
        end = session.generation
        journal = await journal_up_to(session, end)
        documents = []
        for start in range(max(since, end - 64 * STRETCH_BYTES) // STRETCH_BYTES * STRETCH_BYTES, end, STRETCH_BYTES):
            data, _ = await asyncio.to_thread(journal.read_bytes, start, min(start + STRETCH_BYTES, end))
            if not data:
                continue
            key = f"{session.sid}@{start}"
            with rendering(session.output, start, start + len(data)):
                text = (await render(data, session.rows, session.cols, MAX_TEXT_BYTES)).text
            began = self._began.setdefault(key, time.time() if start else session.created)
            if len(self._began) > 10_000:
                self._began.clear()
            documents.append(
                Transcript(
                    key=key,
                    session=session.name,
                    command=session.command,
                    output=text,
                    cwd=session.start_cwd,
                    started=began,
                    exit_code=session.exit_code if not session.running else None,
                    duration_ms=None if session.ended is None else round((session.ended - began) * 1000),
                )
            )
        return documents


def _key(session: Session, command: Command) -> str:
    return f"{session.sid}:{command.id}"
