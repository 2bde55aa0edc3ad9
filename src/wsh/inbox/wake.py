"""Lines that are typed into a session when a command of another one has ended: how an agent in a terminal is woken.

Each is typed once or told as dropped. Its state is on disk before the first byte is written. If a server dies in between, nobody can
know whether the line arrived, so the next server says that instead of typing it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
import unicodedata
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeAlias

from wsh.session import event as ev
from wsh.session.command.foreground import find_front, type_line
from wsh.session.event import SERVER, SessionEvent
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.wire.error import InvalidRequest, LimitReached, LineInUse, NotFound, SessionExited, WshError
from wsh.wire.system.place import ensure_private, write_private

log = logging.getLogger(__name__)

WakeState: TypeAlias = Literal["waiting", "due", "typing", "typed", "dropped"]
_OPEN: tuple[WakeState, ...] = ("waiting", "due", "typing")
_KINDS: dict[str, type] = {"front": int, "generation": int, "set_at": float, "changed_at": float}
_MOST_CHARACTERS = 2000
_UNTYPED = frozenset({"Cc", "Cs", "Zl", "Zp"})
_AGAIN_S = 1.0


@dataclass(frozen=True)
class Wake:
    id: str
    sid: str
    """Of the session that is typed into."""
    session: str
    when_sid: str
    when: str
    """The session whose command has to end."""
    line: str
    front: int
    """The process group that was in front when it was set: the line is meant for that program."""
    generation: int
    """Of `when` at that moment: what ended before it does not count."""
    set_at: float
    changed_at: float
    state: WakeState = "waiting"
    why: str = ""
    """What a line that is due waits for, or why it was dropped."""


class Wakes:
    """`start` goes on with what an earlier server left; `aclose` leaves it to the next one."""

    def __init__(self, path: Path, registry: SessionRegistry, most: int, keep_s: float) -> None:
        self._path = path
        self._registry = registry
        self._most = most
        self._keep_s = keep_s
        self._wakes: dict[str, Wake] = {}
        self._kept: dict[str, Wake] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        found = await asyncio.to_thread(self._read)
        self._wakes = {wake.id: wake for wake in found} | self._wakes
        self._kept = dict(self._wakes)
        for wake in found:
            if wake.state == "typing":
                why = "the server ended while it was typed; whether it arrived is not known"
                await self._try_change(wake.id, "dropped", why)
            elif wake.state in _OPEN:
                self._follow(wake)

    async def aclose(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def list_wakes(self) -> list[Wake]:
        """Oldest first, as they are on disk, with the names that their sessions have now."""
        names = {session.sid: session.name for session in self._registry.list_sessions()}
        return [
            replace(wake, session=names.get(wake.sid, wake.session), when=names.get(wake.when_sid, wake.when))
            for wake in self._kept.values()
        ]

    async def set(self, session: Session, when: Session, line: str) -> Wake:
        """On disk when this returns. Raises InvalidRequest, SessionExited, LimitReached."""
        check_line(line)
        if not when.running:
            raise SessionExited(when.name, when.exit_code)
        front = find_front(session)
        self._check_room()
        now = time.time()
        wake = Wake(
            token_hex(4), session.sid, session.name, when.sid, when.name, line, front, when.generation, now, now
        )
        await self._add(wake)
        return wake

    async def type_now(self, id: str, session: Session, line: str, front: int) -> None:
        """Type `line` as soon as that does no harm; on disk when this returns. An id that is known already is not typed again.

        `front` is the process group that it is meant for, 0 for the session's own program.
        """
        if id in self._wakes:
            return
        check_line(line)
        self._check_room()
        meant, now = front or os.getpgid(session.pid), time.time()
        wake = Wake(
            id, session.sid, session.name, session.sid, session.name, line, meant, session.generation, now, now, "due"
        )
        await self._add(wake)

    async def cancel(self, id: str) -> Wake:
        """Raises NotFound for one that does not wait (any more)."""
        wake = self._wakes.get(id)
        if wake is None or wake.state not in ("waiting", "due"):
            raise NotFound(
                f"No line {id!r} waits to be typed.",
                hint="`wsh wake` lists those that wait; it may have been typed already.",
            )
        await self._stop(id)
        if self._wakes[id].state not in ("waiting", "due"):
            raise NotFound(f"Line {id!r} has just been typed.", hint="Look at the session.")
        return await self._change(id, "dropped", "you took it back")

    def _check_room(self) -> None:
        if sum(wake.state in _OPEN for wake in self._wakes.values()) >= self._most:
            raise LimitReached("lines that wait to be typed", self._most, "inbox.max_wakes")

    async def _add(self, wake: Wake) -> None:
        self._wakes[wake.id] = wake
        try:
            await self._write_all()
        except BaseException:
            self._wakes.pop(wake.id, None)
            raise
        self._follow(wake)

    # one line's way

    def _follow(self, wake: Wake) -> None:
        task = asyncio.ensure_future(self._go(wake))
        self._tasks[wake.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(wake.id, None))

    async def _stop(self, id: str) -> None:
        task = self._tasks.get(id)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _go(self, wake: Wake) -> None:
        changed, ended = asyncio.Event(), False

        def hear(event: SessionEvent) -> None:
            nonlocal ended
            ended = ended or isinstance(event, ev.CommandFinished | ev.Exited | ev.Destroyed)
            changed.set()

        def stir(event: SessionEvent) -> None:
            if not isinstance(event, ev.Output):
                changed.set()

        session, when = self._find(wake.sid), self._find(wake.when_sid)
        stops = [] if when is None else [when.listeners.add(hear)]
        stops += [] if session is None else [session.listeners.add(stir)]
        try:
            if wake.state == "waiting":
                while not (
                    ended or when is None or not when.running or when.history.has_ended_since(0, wake.generation)
                ):
                    if session is None or not session.running or session.closed:
                        break
                    changed.clear()
                    await changed.wait()
            await self._deliver(wake.id, session, changed)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a line could not be typed into session %s", wake.session)
            await self._try_change(wake.id, "dropped", "the server failed; its log says how")
        finally:
            for stop in stops:
                stop()

    async def _deliver(self, id: str, session: Session | None, changed: asyncio.Event) -> None:
        while session is not None and session.running and not session.closed:
            changed.clear()
            why = await self._attempt(id, session)
            if why is None:
                return
            if (self._wakes[id].state, self._wakes[id].why) != ("due", why):
                await self._try_change(id, "due", why)
            await _wait(changed, _AGAIN_S)
            # A program that prints all the time would have us ask all the time.
            await asyncio.sleep(0.05)
        await self._try_change(id, "dropped", "the session is gone" if session is None else "the session has ended")

    async def _attempt(self, id: str, session: Session) -> str | None:
        """None if nothing is left to do; else why it cannot be typed now."""
        begun = False

        async def commit() -> None:
            nonlocal begun
            begun = True
            try:
                await self._change(id, "typing", "")
            except BaseException:
                begun = False
                raise

        wake = self._wakes[id]
        typing = asyncio.ensure_future(type_line(session, wake.line, SERVER, wake.front, commit))
        try:
            why = await asyncio.shield(typing)
        except asyncio.CancelledError:
            # What has begun goes to its end, also when somebody takes it back or the server ends.
            if not begun:
                typing.cancel()
            await asyncio.gather(typing, return_exceptions=True)
            if begun and not typing.cancelled() and typing.exception() is None:
                await self._try_change(id, "typed", "")
            raise
        except LineInUse:
            await self._try_change(id, "typed", "somebody typed at the same time: Enter was not pressed")
            return None
        except OSError as problem:
            return f"the disk refused to note it: {problem.strerror}"
        except WshError as problem:
            if not begun:
                return problem.message
            await self._try_change(id, "dropped", f"it began to be typed, and then: {problem.message}")
            return None
        if why is None:
            await self._try_change(id, "typed", "")
        return why

    def _find(self, sid: str) -> Session | None:
        return next((session for session in self._registry.list_sessions() if session.sid == sid), None)

    # what is kept

    async def _change(self, id: str, state: WakeState, why: str) -> Wake:
        before = self._wakes[id]
        wake = self._wakes[id] = replace(before, state=state, why=why, changed_at=time.time())
        try:
            await self._write_all()
        except BaseException:
            self._wakes[id] = before
            raise
        return wake

    async def _try_change(self, id: str, state: WakeState, why: str) -> None:
        """What has happened counts, also where the disk refuses it."""
        try:
            await self._change(id, state, why)
        except OSError as problem:
            log.warning("what became of a line that was to be typed was not kept: %s", problem)
            self._wakes[id] = replace(self._wakes[id], state=state, why=why, changed_at=time.time())
            self._kept = dict(self._wakes)

    async def _write_all(self) -> None:
        # A write that has begun goes to its end before the next one begins, else an older state could come last.
        await asyncio.shield(self._write_in_turn())

    async def _write_in_turn(self) -> None:
        async with self._writing:
            now = time.time()
            self._wakes = {
                id: wake
                for id, wake in self._wakes.items()
                if wake.state in _OPEN or now - wake.changed_at < self._keep_s
            }
            ended = [id for id, wake in self._wakes.items() if wake.state not in _OPEN]
            for id in ended[: max(0, len(ended) - self._most)]:
                del self._wakes[id]
            text = json.dumps([asdict(wake) for wake in self._wakes.values()]).encode()
            kept = dict(self._wakes)
            await asyncio.to_thread(self._write, text)
            self._kept = kept

    def _write(self, text: bytes) -> None:
        ensure_private(self._path.parent)
        write_private(self._path, text)

    def _read(self) -> list[Wake]:
        try:
            return [_restore(one) for one in json.loads(self._path.read_bytes())]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            log.warning("lines that were to be typed cannot be read and are dropped: %s", problem)
            return []


def _restore(kept: dict[str, object]) -> Wake:
    """Raises ValueError or TypeError for what we cannot have written."""
    for name, value in kept.items():
        kind = _KINDS.get(name, str)
        if not isinstance(value, kind) or (name == "state" and value not in (*_OPEN, "typed", "dropped")):
            raise ValueError(f"{name} cannot be {value!r}")
    return Wake(**kept)  # type: ignore[arg-type]  # checked above


def check_line(line: str) -> None:
    if not line.strip() or len(line) > _MOST_CHARACTERS:
        raise InvalidRequest(
            f"A line has 1 to {_MOST_CHARACTERS} characters, not all of them blank.", hint="Say what is to be typed."
        )
    if any(unicodedata.category(sign) in _UNTYPED for sign in line):
        raise InvalidRequest(
            "A line that is typed by itself holds no control characters, line breaks or tabs.",
            hint="Enter is pressed for you; write everything into one line.",
        )


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        pass
