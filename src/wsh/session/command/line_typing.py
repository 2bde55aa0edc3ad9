"""Typing a command as a careful person would: when the shell reads, and line by line.

What is typed while a program runs is echoed by the kernel into that program's output, and a line that a program was to read
may be taken by the shell. So each line of several waits until the shell shows a prompt, asks for the rest of a command, or the
program in front reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from wsh.process import ProcessState
from wsh.session.command.command import CommandLog
from wsh.session.command.turn import LineTurn, count_unread, has_heard_all, read_modes
from wsh.session.event import Actor
from wsh.session.state import shell_name, wants_input
from wsh.wire.error import InvalidRequest, LineInUse, SessionExited

if TYPE_CHECKING:
    from wsh.session.session import Session

PROMPT_GRACE_S = 0.1
INTERRUPT_GRACE_S = 0.5
LOOK_SOON_S = 0.004
_PAUSE_S = 0.03
# Their editors take the key after Ctrl+V as it is.
_QUOTING_SHELLS = frozenset("sh bash rbash zsh rzsh ksh mksh".split())


class LineTyping:
    """`wake` is set whenever a mark of the shell has come or the session ended."""

    def __init__(self, session: Session, actor: Actor, wake: asyncio.Event, deadline: float, turn: LineTurn) -> None:
        self._turn = turn
        self._session = session
        self._actor = actor
        self._wake = wake
        self._deadline = deadline

    async def pause(self, seconds: float) -> None:
        """Until something happens, at most so long."""
        try:
            async with asyncio.timeout(max(seconds, 0.0005)):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def inspect(self) -> ProcessState | None:
        try:
            return await self._session.inspect()
        except SessionExited:
            return None

    @staticmethod
    def grace(log: CommandLog, times: int = 1) -> float:
        """How long a prompt may take to be complete, if it is one that tells."""
        return PROMPT_GRACE_S * times if not log.open_prompt else LOOK_SOON_S * 5

    async def wait_until_ready(self, log: CommandLog, silence_s: float, first_prompt_s: float) -> bool:
        """A shell that is still drawing its prompt would have what is typed now echoed twice.

        False if a shell that is to tell has not shown its first prompt in time: its startup files take long.
        """
        await self._wait_after_interrupt(log)
        if log.silent:
            return True
        first = log.phase == "starting" and not log.prompts
        until = min(time.monotonic() + (first_prompt_s if first else self.grace(log, 3)), self._deadline)
        while log.phase in ("starting", "prompting") and self._session.running:
            left = until - time.monotonic()
            if left <= 0:
                return log.phase != "starting"
            self._wake.clear()
            await self.pause(min(left, PROMPT_GRACE_S))
            quiet = time.monotonic() - self._session.last_activity
            if log.phase == "starting" and quiet > silence_s:
                seen = await self.inspect()
                elsewhere = seen is not None and seen.relayed and seen.reading == "unknown"
                if seen is None or elsewhere or wants_input(self._session, seen):
                    log.silent = True  # a startup file asks something, or the shell is no longer ours
                    return True
        return True

    async def _wait_after_interrupt(self, log: CommandLog) -> None:
        """A shell that drops its line for Ctrl+C loses the next key as well, until it shows a new prompt."""
        at, prompts = self._session.input.interrupted
        until = min(at + INTERRUPT_GRACE_S, self._deadline)
        while log.prompts == prompts and self._session.running and time.monotonic() < until:
            self._wake.clear()
            await self.pause(until - time.monotonic())

    async def type_lines(self, lines: list[bytes], log: CommandLog, begin: Callable[[], Awaitable[bytes]]) -> int:
        """All but the last line, each when its time has come. Returns the generation from before the first.

        `begin` is awaited before the first. At the deadline the rest is typed ahead.
        """
        first, before = 0, (0, 0)

        def note() -> None:
            # Right before the line is written: a slow prompt may come while the line is asked for.
            nonlocal before
            before = (log.prompts_due, log.continued)

        async def begin_first() -> bytes:
            prefix = await begin()
            note()
            return prefix

        for number, line in enumerate(lines):
            if number:
                await self.type_next(line, note)
            else:
                first = await self._session.input.send(line, self._actor, before=begin_first)
            await self._wait_until_next(log, before, time.monotonic())
        return first

    async def type_next(self, line: bytes, note: Callable[[], None] = lambda: None) -> None:
        """A further line of the same run; `note` is called right before it is written."""

        async def still_ours() -> bytes:
            await self._turn.check_still_ours()
            note()
            return b""

        while True:
            try:
                await self._session.input.send(line, self._actor, before=still_ours)
                return
            except LineInUse as problem:
                if not await self._turn.wait(problem):
                    problem.facts["partly_typed"] = True
                    raise

    async def quote_foreign_tabs(self, data: bytes) -> bytes:
        """In a shell that we did not start a tab asks for completion too. Raises InvalidRequest where it cannot be typed."""
        modes = read_modes(self._session.child)
        if modes is None or modes.canonical or self._session.terminal.alt:
            return data
        seen = await self.inspect()
        name = shell_name(seen.foreground.comm) if seen is not None and seen.foreground is not None else ""
        if seen is not None and (seen.relayed or name in _QUOTING_SHELLS):
            return quote_tabs(data, "bash")
        if name:
            raise InvalidRequest(
                f"A tab cannot be typed into this {name}: it would ask for completion.",
                hint="Use spaces, or open a session of that shell, where tabs are typed as they are.",
            )
        return data

    async def _wait_until_next(self, log: CommandLog, before: tuple[int, int], sent: float) -> None:
        session, step = self._session, _PAUSE_S
        while session.running and time.monotonic() < self._deadline:
            self._wake.clear()
            if log.phase == "prompt" and (log.prompts, log.continued) != before:
                return
            quiet = time.monotonic() - max(session.last_activity, sent)
            if quiet >= step and not session.output.backlog():
                # In this order: a shell that has taken the line and then reads is through with it.
                unread = count_unread(session)
                seen = await self.inspect()
                reads = seen is None or (seen.reading == "yes" and not unread)
                reads = reads or (seen is not None and seen.reading == "unknown" and quiet > 10 * _PAUSE_S)
                if reads and await has_heard_all(session):
                    return
                step = quiet + min(quiet, 0.25)
            await self.pause(min(max(step - quiet, LOOK_SOON_S), self._deadline - time.monotonic()))

    async def clear_refused_line(self, log: CommandLog) -> None:
        """fish leaves a line that it refuses in its editor, where the next input would be added to it."""
        until = time.monotonic() + 5 * PROMPT_GRACE_S
        while time.monotonic() < until and self._session.running:
            seen = await self.inspect()
            if seen is not None and seen.reading == "yes":
                break
            await asyncio.sleep(LOOK_SOON_S)
        prompts = log.prompts
        await self._session.input.send(b"\x03", self._actor)
        while log.prompts == prompts and self._session.running and time.monotonic() < until:
            self._wake.clear()
            await self.pause(until - time.monotonic())


def quote_tabs(data: bytes, shell: str) -> bytes:
    """A tab in a command is a tab, not a wish for completion."""
    if shell == "fish":
        return data.replace(b"\t", b"\x1b[5179~")  # bound by our script: fish has no key to quote the next one
    return data.replace(b"\x16\t", b"\t").replace(b"\t", b"\x16\t")
