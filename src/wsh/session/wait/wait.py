"""Waiting on a session, exactly.

A wait names one or more conditions; the first that holds ends it and is named in the result. Quiet is judged by a timer that looks
at the time of the last output and input, never by polling the screen. A child's exit ends every wait at once.

States (at the prompt, input wanted, exited) are true now, whatever came before. Events (a text, a command's end) count since a
generation, or since the caller's last input. Silence is a state too; a caller that names a generation wants new activity first.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from wsh.session.command.turn import has_heard_all
from wsh.session.state import wants_input
from wsh.session.wait.pattern import compile_literal, compile_pattern
from wsh.session.wait.textwatch import TextWatch
from wsh.wire.error import InvalidRequest, WaitTimeout

if TYPE_CHECKING:
    from wsh.session.session import Session

_LOOK_AGAIN_S = 0.1

EndedBy: TypeAlias = Literal["quiet", "text", "regex", "command", "prompt", "input_wanted", "exit"]


@dataclass(frozen=True)
class WaitSpec:
    """What to wait for. `max_wait_ms` is the overall deadline."""

    quiet_ms: int | None = None
    text: str | None = None
    regex: str | None = None
    command: bool = False
    """A command of the integrated shell ended (after `generation` if that is given)."""
    prompt: bool = False
    """The shell stands at its prompt."""
    input_wanted: bool = False
    """The foreground program is blocked reading the terminal."""
    exit: bool = False
    generation: int | None = None
    """What the caller saw last: silence and events count after it. Equal to the current one, new activity is awaited."""
    events_since: int | None = None
    """Without `generation`: texts and commands count from here on, such as the caller's last input."""
    fresh: bool = False
    """Wait for one full silence from now on, even if it is quiet already."""
    max_wait_ms: int = 30_000

    @property
    def since(self) -> int | None:
        return self.events_since if self.generation is None else self.generation

    def __post_init__(self) -> None:
        for name in ("quiet_ms", "max_wait_ms"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidRequest(f"{name} must not be negative.", hint="Give a number of milliseconds.")
        if not (
            self.quiet_ms is not None
            or self.text is not None
            or self.regex is not None
            or self.command
            or self.prompt
            or self.input_wanted
            or self.exit
        ):
            raise InvalidRequest(
                "The wait names no condition.",
                hint="Name at least one: a time of silence, text, regex, command, prompt, input_wanted or exit.",
            )
        if self.text == "" or self.regex == "":
            raise InvalidRequest("An empty text is printed all the time.", hint="Give some text to wait for.")


@dataclass(frozen=True)
class WaitResult:
    ended_by: EndedBy
    generation: int
    matched: str | None = None
    """The text that matched, for text and regex."""
    waited_ms: float = 0.0
    command_id: int | None = None
    """The command that ended, for command."""


async def wait_until(session: Session, spec: WaitSpec) -> WaitResult:
    """Wait for the first condition of `spec`. Raises WaitTimeout at its deadline; the session is left alone."""
    started = time.monotonic()
    deadline = started + spec.max_wait_ms / 1000
    watch = _make_watch(session, spec)
    wake = asyncio.Event()
    first_command = session.history.ended_count
    unsubscribe = session.listeners.add(lambda event: wake.set() if _matters(event, spec) else None)
    prober = _Prober(session, spec)
    try:
        while True:
            wake.clear()
            now = time.monotonic()
            ended = _evaluate(session, spec, watch, started, now, first_command)
            if ended is None and await prober.look(now):
                # What came during the look goes before: a shell that reads has told the end of its command.
                ended = _evaluate(session, spec, watch, started, now, first_command) or "input_wanted"
            if ended is not None:
                matched = watch.matched if watch is not None and ended in {"text", "regex"} else None
                command_id = session.history.last_ended if ended == "command" else None
                waited_ms = (time.monotonic() - started) * 1000
                return WaitResult(ended, session.generation, matched, waited_ms, command_id)
            now = time.monotonic()
            if now >= deadline:
                raise _timeout(session, spec)
            pause = min(deadline - now, _until_quiet(session, spec, started, now), prober.pause(now))
            if spec.prompt and session.at_prompt == "unknown":
                pause = min(pause, _LOOK_AGAIN_S)
            try:
                async with asyncio.timeout(max(pause, 0.0005)):
                    await wake.wait()
            except TimeoutError:
                pass
    finally:
        unsubscribe()
        if watch is not None:
            watch.close()


def _make_watch(session: Session, spec: WaitSpec) -> TextWatch | None:
    if spec.text is not None:
        return TextWatch(session, compile_literal(spec.text), spec.since)
    if spec.regex is not None:
        return TextWatch(session, compile_pattern(spec.regex), spec.since)
    return None


def _matters(event: object, spec: WaitSpec) -> bool:
    """Quiet alone does not need to hear every output: its timer looks at the clock by itself."""
    from wsh.session.event import CommandFinished, CommandStarted, Destroyed, Exited, Output, PromptShown

    if isinstance(event, Exited | Destroyed | CommandFinished | CommandStarted | PromptShown):
        return True
    return isinstance(event, Output) and (
        spec.text is not None or spec.regex is not None or spec.prompt or spec.generation is not None
    )


def _evaluate(
    session: Session, spec: WaitSpec, watch: TextWatch | None, started: float, now: float, first_command: int
) -> EndedBy | None:
    if watch is not None and watch.found():
        return "text" if spec.text is not None else "regex"
    if spec.command and session.history.has_ended_since(first_command, spec.since):
        return "command"
    if spec.prompt and session.at_prompt == "yes":
        return "prompt"
    if not session.running:
        return "exit"
    if spec.quiet_ms is not None and _is_new(session, spec) and _until_quiet(session, spec, started, now) <= 0:
        return "quiet"
    return None


def _is_new(session: Session, spec: WaitSpec) -> bool:
    return spec.generation is None or session.generation > spec.generation


def _until_quiet(session: Session, spec: WaitSpec, started: float, now: float) -> float:
    """Seconds until it will have been silent long enough, if nothing more comes."""
    if spec.quiet_ms is None:
        return float("inf")
    if not _is_new(session, spec):
        return float("inf")
    # Input counts as activity: else a wait right after it would end on the silence, and the screen, from before it.
    since = max(session.last_activity, session.input.last[1] if session.input.last is not None else -math.inf)
    if spec.fresh:
        since = max(since, started)
    if session.output.backlog():
        since = now
    return since + spec.quiet_ms / 1000 - now


def _timeout(session: Session, spec: WaitSpec) -> WaitTimeout:
    return WaitTimeout(
        f"Session {session.name!r} did not reach the awaited state within {spec.max_wait_ms} ms.",
        timeout_ms=spec.max_wait_ms,
        session=session.name,
        generation=session.generation,
    )


class _Prober:
    """Asks the kernel whether the program wants input: when output pauses, then ever less often."""

    def __init__(self, session: Session, spec: WaitSpec) -> None:
        self._session = session
        self._wanted = spec.input_wanted
        self._next = 0.0
        self._step = 0.02
        self._seen = -1

    def pause(self, now: float) -> float:
        return max(self._next - now, 0.0) if self._wanted else float("inf")

    async def look(self, now: float) -> bool:
        if not self._wanted or now < self._next:
            return False
        if self._session.generation != self._seen:
            self._seen, self._step = self._session.generation, 0.02
        if now - self._session.last_activity >= 0.015 and not self._session.output.backlog():
            state = await self._session.inspect()
            if wants_input(self._session, state) and await has_heard_all(self._session):
                return True
        self._next = time.monotonic() + self._step
        self._step = min(self._step * 1.5, 0.5)
        return False
