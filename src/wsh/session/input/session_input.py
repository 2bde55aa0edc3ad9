"""What is typed into one session, in the order in which it came.

Input is written by one caller at a time. It notes the generation of everything printed *before* the write, so that a wait for
something newer can never be satisfied by an older screen. Every write is noted in `line`, which knows what stands on the line and
who typed it. Knows nothing of waiting or viewers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsh.process import ChildHandle, InputClosed
from wsh.session import event as ev
from wsh.session.command.line import REPORTS, LineInfo, LineModes, TypedLine
from wsh.session.command.turn import count_unread, look_at_line, read_modes, refuse_over_another
from wsh.session.event import SERVER, Actor
from wsh.session.input.receipt import Receipt, Receipts
from wsh.wire.error import LimitReached, SessionExited, SessionTaken, WaitTimeout
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.session.session import Session


@dataclass(frozen=True)
class InputLimits:
    """How much input may wait for a child that does not read, and for how long; and how long output may take to parse."""

    waiting_bytes: int = 4 << 20
    timeout_ms: int = 30_000
    line_wait_ms: int = 5000
    """How long a run waits for a person who is typing a line."""
    engine_timeout_s: float = 10.0
    """Processor time after which a visit to the terminal engine counts as its death."""
    first_prompt_ms: int = 30_000
    """How long a run waits for the first prompt of a shell that is to tell."""


class SessionInput:
    """`changed` is called when what a successor has to know of the line has changed."""

    def __init__(self, session: Session, limits: InputLimits, changed: Callable[[], None]) -> None:
        self._session = session
        self.limits = limits
        self.gate: Callable[[Session, Actor, bytes], None] | None = None
        """Raises where that actor may not type these bytes."""
        self.taken_by: str | None = None
        self.last: tuple[Actor, float] | None = None
        """Who typed last, and when by the monotonic clock."""
        self.person_typed: float | None = None
        """When a person typed last, whoever typed since."""
        self.line = TypedLine(changed=changed)
        """What has been typed since the last Enter, and by whom."""
        self.full_screen_line = TypedLine(changed=changed)
        """The same for full-screen programs, which read keys rather than lines: only that something was typed counts."""
        self.run_waits: tuple[Actor, str] | None = None
        """Whose run waits until the line is free, and what it is."""
        self.interrupted: tuple[float, int] = (0.0, 0)
        """When Ctrl+C was last typed, and how many prompts the shell had shown before."""
        self.receipts = Receipts()
        self._writing = asyncio.Lock()
        self._waiting_bytes = 0

    def facts(self) -> JsonObject:
        """What a successor has to know of it."""
        by = self.line.entered_by
        return {
            "line": self.line.facts(),
            "keys_open": self.full_screen_line.pending,
            "entered_by": None if by is None else [by.kind, by.id],
        }

    def recall(self, facts: JsonObject) -> None:
        if facts.get("entered_by"):
            kind, id = facts["entered_by"]
            self.line.entered_by = Actor(kind, id)
        if facts.get("line"):
            self.line.recall(facts["line"])
        if facts.get("keys_open"):
            modes = read_modes(self._session.child)
            if modes is not None:
                self.full_screen_line.restore("", SERVER, time.time(), modes)

    # typing

    async def send(
        self,
        data: bytes,
        actor: Actor,
        *,
        before: Callable[[], Awaitable[bytes]] | None = None,
        receipt: Receipt | None = None,
    ) -> int:
        """Write `data` to the child and return the generation from before the write.

        `before` is awaited while no other input can come between, may refuse by raising, and returns bytes to write first. Returns when the kernel has taken all of it. Raises SessionExited, SessionTaken (agents, while a person has taken
        over), LimitReached if too much waits already, or WaitTimeout if the child does not read for too long: then the
        rest is dropped, and the error says how much was written. `receipt` counts what is written, as it is.
        """
        self._check(actor, data)
        asked = len(data)  # `before` may add to it
        if self._waiting_bytes + asked > self.limits.waiting_bytes:
            raise LimitReached("bytes of waiting input", self.limits.waiting_bytes, "session.input_bytes")
        self._waiting_bytes += asked
        try:
            async with self._writing:
                child = self._check(actor, data)
                if before is not None:
                    data = await before() + data
                    child = self._check(actor, data)
                generation = child.ring.head
                self._note(data, actor, read_modes(child))
                await self._write(child, memoryview(data), receipt)
                self._note_typing(actor, time.monotonic())  # the write may have waited for the child
        finally:
            self._waiting_bytes -= asked
        self._session.listeners.tell(ev.Input(actor, len(data), generation))
        return generation

    async def type(self, data: bytes, actor: Actor) -> int:
        """As `send`, for programs: raises LineInUse where text that somebody else typed stands on the line."""
        return await self.send(data, actor, before=lambda: refuse_over_another(self._session, data, actor))

    def send_at_once(self, data: bytes, actor: Actor, receipt: Receipt | None = None) -> int:
        """Write what the kernel takes now and return how many bytes that were; none while other input is under way.

        Raises SessionExited, or SessionTaken as `send` does. A key that a person pressed waits for nobody this way.
        """
        child = self._check(actor, data)
        if self._writing.locked():
            return 0
        generation = child.ring.head
        try:
            count = self._give(child, data, receipt)
        except InputClosed:
            raise SessionExited(self._session.name, self._session.exit_code) from None
        if count:
            modes = read_modes(child)
            self._session.output.show_ahead()  # the echo may be there already, and is what the person waits for
            self._note(data[:count], actor, modes)
            self._session.listeners.tell(ev.Input(actor, count, generation))
        return count

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Nobody's input is written meanwhile; keep it short."""
        async with self._writing:
            yield

    def _check(self, actor: Actor, data: bytes) -> ChildHandle:
        session = self._session
        if not session.running or session.child is None:
            raise SessionExited(session.name, session.exit_code)
        if self.taken_by is not None and actor.kind == "agent":
            raise SessionTaken(session.name, self.taken_by)
        if self.gate is not None:
            self.gate(session, actor, data)
        return session.child

    def _note(self, data: bytes, actor: Actor, modes: LineModes | None) -> None:
        now = time.monotonic()
        self._note_typing(actor, now)
        log = self._session.commands
        if modes is not None and self._session.terminal.alt and not modes.canonical:
            self.full_screen_line.note(REPORTS.sub(b"", data), actor, modes, now, time.time())
        elif modes is not None:
            asked = log.asked if log is not None and log.phase in ("prompt", "prompting") else None
            self.line.note(data, actor, modes, now, time.time(), asked, lambda: count_unread(self._session))
        if b"\x03" in data:
            self.interrupted = (time.monotonic(), log.prompts if log is not None else 0)

    def _note_typing(self, actor: Actor, now: float) -> None:
        self.last = (actor, now)
        if actor.kind == "person":
            self.person_typed = now

    def _give(self, child: ChildHandle, data: bytes | memoryview, receipt: Receipt | None) -> int:
        """Write what the kernel takes now."""
        if receipt is None:
            return child.write(data)
        self.receipts.note(child.ring, receipt, under_way=True)
        count = 0
        try:
            count = child.write(data)
        finally:
            self.receipts.add(child.ring, receipt, count)
        return count

    def settle(self, receipt: Receipt, count: int) -> None:
        """So many bytes that came are for nobody, or were refused: they count as written."""
        child = self._session.child
        ring = child.ring if child is not None and self._session.running else None
        self.receipts.add(ring, receipt, count)

    async def _write(self, child: ChildHandle, data: memoryview, receipt: Receipt | None) -> None:
        written = 0
        deadline = time.monotonic() + self.limits.timeout_ms / 1000
        try:
            while written < len(data):
                count = self._give(child, data[written:], receipt)
                written += count
                if not count:
                    async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                        await child.wait_until_writable()
        except InputClosed:
            raise SessionExited(self._session.name, self._session.exit_code) from None
        except TimeoutError:
            raise WaitTimeout(
                f"The program in session {self._session.name!r} does not read its input; {written} of {len(data)} bytes were written.",
                timeout_ms=self.limits.timeout_ms,
                hint="Look at the screen: it may need Ctrl+C or Ctrl+Q, or more time.",
                written=written,
            ) from None

    # whose turn it is

    async def look_at_line(self) -> LineInfo | None:
        """What stands on the line now; None if nothing does, or nobody reads lines."""
        async with self.hold():
            return await look_at_line(self._session)

    def announce_wait(self, actor: Actor | None, command: str) -> None:
        """Tell everybody who looks that a run waits for the line; None when it no longer does."""
        self.run_waits = (actor, command) if actor is not None else None
        self._session.listeners.tell(ev.RunWaitChanged(actor, command))

    def take_over(self, by: str) -> None:
        """A person wants the keyboard: agents' input is refused until `hand_back`."""
        if self.taken_by != by:
            self.taken_by = by
            self._session.listeners.tell(ev.TakenOver(by))

    def hand_back(self) -> None:
        if self.taken_by is not None:
            self.taken_by = None
            self._session.listeners.tell(ev.TakenOver(None))
