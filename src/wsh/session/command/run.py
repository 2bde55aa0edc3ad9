"""Run a command in a session and say what came of it.

Where the shell tells (see `command`), the run ends when the shell says that the command ended. It also ends when the program
in front wants input or is on the alternate screen and has been silent for `timeout_ms`; and where nothing tells, on silence.
The result names which it was. Runs on one session wait for each other, and a run types only onto an empty line (see `turn`). While a program in front of the
shell runs and reads nothing, a run waits with nothing typed. Nothing that was on the screen before the input can end a run: what is awaited is counted from the write on.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from wsh.process import ProcessInfo, ProcessState
from wsh.session import event as ev
from wsh.session.command.command import Command, CommandLog
from wsh.session.command.line_typing import LOOK_SOON_S, PROMPT_GRACE_S, LineTyping, quote_tabs
from wsh.session.command.output import Capture, OutputText, render
from wsh.session.command.turn import (
    LineMoved,
    LineTurn,
    count_unread,
    has_heard_all,
    is_another_in_front,
)
from wsh.session.event import Actor, SessionEvent
from wsh.session.record.playback import read_output
from wsh.session.state import describe_process, shell_name, wants_input
from wsh.wire.error import InvalidRequest, LineInUse, SessionExited, SessionNotFound, WaitTimeout
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.session.session import Session

FinishedBy: TypeAlias = Literal["command", "quiet", "exit", "prompt"]

_LOOK_AGAIN_S = 0.25
_LOOK_FIRST_S = 0.02
_HANDOVER_S = 0.001
_PARSE_TURNS = 50
_HEARING_S = 1.0
_ENTER_ALT = b"\x1b[?1049h"
_FORK_LOOKS, _FORK_PAUSE_S = 4, 0.003
# What fish itself writes when a command begins.
_SHOWN = 200
_KEYS = frozenset(b"\x03\x04\x1a\x1c")
"""Ctrl+C, Ctrl+D, Ctrl+Z and Ctrl+\\ are for the program in front, whatever it does."""
_FISH_PROLOGUE = re.compile(rb"\A(?:\x1b\[\?2004l)?(?:\x1b\]0;[^\x07]*\x07)?\x1b\[30m\x1b\(B\x1b\[m\r")


class _ProgramBusy(Exception):
    """The program in front of the shell runs and reads nothing; nothing was typed."""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. Fields that nobody can know are None."""

    finished_by: FinishedBy
    generation: int
    exit_code: int | None = None
    output: OutputText | None = None
    """What the command printed; so far, if it goes on. What came after the input, if a program was running already."""
    duration_ms: float | None = None
    pipestatus: list[int] | None = None
    command_id: int | None = None
    commands: tuple[int, ...] = ()
    """All commands that this input ran, where it had several lines."""
    jobs: tuple[ProcessInfo, ...] = ()
    """Programs that the session has in the background now."""
    input_generation: int = 0
    """The generation from before the input: events that the run itself caused come after it."""
    cleared_line: JsonObject | None = None
    """What stood on the line and was cleared, and whether it was put back."""
    note: str | None = None
    """Said once in a session: this shell does not tell, and what to do about it."""
    unfinished: bool = False
    """Whether the shell asks for the rest of the command."""

    def to_wire(self, session: str) -> JsonObject:
        """As every door tells it, without the screen; what is not known is left out."""
        told: JsonObject = {
            "finished_by": self.finished_by,
            "generation": self.generation,
            "exit_code": self.exit_code,
            "output": None if self.output is None else self.output.text,
            "duration_ms": self.duration_ms,
            "pipestatus": self.pipestatus,
            "command_id": self.command_id,
        }
        told = {key: value for key, value in told.items() if value is not None}
        if len(self.commands) > 1:
            told["commands"] = list(self.commands)
        if self.jobs:
            told["background"] = [describe_process(job) for job in self.jobs]
        if self.note is not None:
            told["note"] = self.note
        if self.unfinished:
            told["unfinished"] = True
        if self.cleared_line is not None:
            told["cleared_line"] = self.cleared_line
        if self.output is not None and self.output.truncated:
            told["truncated"] = {
                "omitted_bytes": self.output.omitted_bytes,
                "omitted_lines": self.output.omitted_lines,
                "total_bytes": self.output.total_bytes,
                "total_lines": self.output.total_lines,
            }
            if self.command_id is not None:
                told["truncated"]["rest"] = f"/sessions/{session}/commands/{self.command_id}/output"
        return told


async def run_command(
    session: Session,
    text: str | bytes,
    actor: Actor,
    *,
    enter: bool = True,
    timeout_ms: int = 2000,
    max_wait_ms: int = 30_000,
    max_output_bytes: int = 64 * 1024,
    clear_line: bool = False,
    answer: bool = True,
    line_wait_ms: int = 5000,
    first_prompt_ms: int = 30_000,
) -> RunOutcome:
    """Type `text` (and Enter, unless it ends in one) and wait.

    Raises LineInUse if something stands on the line already and `clear_line` is not given; while a person types it, that is
    waited for up to `line_wait_ms`. Without `answer` it is also raised where a command of the shell asks for something. A new shell is given `first_prompt_ms` for its startup files. Raises WaitTimeout if it needs
    longer, with nothing typed, and at the deadline: then the command goes on, and the error says how to go on waiting. Where a program in
    front of the shell runs and reads nothing, that is waited for, visibly; at the deadline nothing was typed, and the error has `busy`.
    """
    for name, value in (
        ("timeout_ms", timeout_ms),
        ("max_wait_ms", max_wait_ms),
        ("max_output_bytes", max_output_bytes),
    ):
        if value < 0:
            raise InvalidRequest(f"{name} must not be negative.", hint="Give a whole number from 0 on.")
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
    data = data.replace(b"\r\n", b"\r")  # one end of a line is one Enter
    if enter and not data.endswith((b"\r", b"\n")):
        data += b"\r"
    deadline = time.monotonic() + max_wait_ms / 1000
    shown = data.decode("utf-8", "replace").strip()
    turn = LineTurn(session, actor, shown, deadline, line_wait_ms / 1000, clear=clear_line)
    await _take_turn(session, max_wait_ms)
    run = _Run(session, data, actor, timeout_ms / 1000, max_wait_ms, deadline, max_output_bytes, turn, first_prompt_ms)
    run.answers = answer
    try:
        try:
            outcome = await run.go()
        finally:
            await turn.give_back()
        if session.closed:
            raise SessionNotFound(session.name)
        return replace(outcome, input_generation=run.generation, cleared_line=turn.describe())
    except WaitTimeout as problem:
        if run.has_typed:
            problem.facts["input_generation"] = run.generation
        raise
    finally:
        run.close()
        session.lock.release()


async def type_command(
    session: Session, text: str, actor: Actor, *, max_wait_ms: int, line_wait_ms: int, first_prompt_ms: int = 30_000
) -> None:
    """Type `text` and Enter as a run does, onto an empty line, and wait for nothing else."""
    deadline = time.monotonic() + max_wait_ms / 1000
    turn = LineTurn(session, actor, text.strip(), deadline, line_wait_ms / 1000)
    await _take_turn(session, max_wait_ms)
    data = text.rstrip("\r\n").encode() + b"\r"
    run = _Run(session, data, actor, 0.5, max_wait_ms, deadline, 0, turn, first_prompt_ms)
    try:
        await run.type()
    finally:
        run.close()
        session.lock.release()


async def _take_turn(session: Session, max_wait_ms: int) -> None:
    """Runs on one session go one after the other."""
    try:
        async with asyncio.timeout(max_wait_ms / 1000):
            await session.lock.acquire()
    except TimeoutError:
        raise WaitTimeout(
            f"Another run_command on session {session.name!r} has not ended within {max_wait_ms} ms; nothing was typed.",
            timeout_ms=max_wait_ms,
            hint="Wait for it, use another session, or send input without waiting.",
            session=session.name,
        ) from None


class _Run:
    def __init__(
        self,
        session: Session,
        data: bytes,
        actor: Actor,
        silence_s: float,
        max_wait_ms: int,
        deadline: float,
        max_output_bytes: int,
        turn: LineTurn,
        first_prompt_ms: int,
    ) -> None:
        self._session = session
        self._first_prompt_ms = first_prompt_ms
        self._turn = turn
        self._log: CommandLog | None = session.commands
        self._data = data
        self._actor = actor
        self._silence_s = silence_s
        self._max_wait_ms = max_wait_ms
        self._deadline = deadline
        self._max_output = max_output_bytes
        self._is_line = data.endswith((b"\r", b"\n")) and _KEYS.isdisjoint(data)
        self._several = b"\n" in data[:-1] or b"\r" in data[:-1]
        self._wake = asyncio.Event()
        self._typing = LineTyping(session, actor, self._wake, deadline, turn)
        self._ended: list[tuple[Command, Capture | None]] = []
        self._sent = 0.0
        self.generation = session.generation
        """From before the input."""
        self._looked = 0.0
        self._unknown = False  # as it was seen last: something is in between, and nobody can tell
        self._soon = False
        self._at_prompt = False
        self._ended_before = 0
        self._empty_before = 0
        self._prompts_before = 0
        self._running_before = 0
        self._alt_before = False
        self.answers = True
        """Whether the input may go to a command that asks for something."""
        self._stop = session.listeners.add(self._hear)
        if self._log is not None:
            self._log.holders += 1

    def close(self) -> None:
        self._stop()
        if self._log is not None:
            self._log.holders -= 1
            self._log.let_go()

    def _hear(self, event: SessionEvent) -> None:
        if isinstance(event, ev.CommandFinished) and self._log is not None and self._sent:
            command = self._log.find(event.id)
            if command is not None:
                self._ended.append((command, self._log.captured(command)))
        if isinstance(event, ev.CommandFinished | ev.CommandStarted | ev.PromptShown | ev.Exited | ev.Destroyed):
            self._wake.set()

    @property
    def has_typed(self) -> bool:
        return self._sent > 0

    # typing

    async def go(self) -> RunOutcome:
        await self.type()
        if len(self._ended) == self._ended_before:
            self._sent = time.monotonic()
        return await self._wait()

    async def type(self) -> None:
        """Type everything, as soon as the line is free and somebody reads it."""
        try:
            await self._type_when_read()
        finally:
            self._turn.end_announcement()

    async def _type_when_read(self) -> None:
        log, step = self._log, _LOOK_FIRST_S
        while True:
            if log is not None and not await self._typing.wait_until_ready(
                log, self._silence_s, self._first_prompt_ms / 1000
            ):
                raise await self._not_ready()
            try:
                await self._type_now()
            except LineMoved:
                continue
            except _ProgramBusy:
                await self._wait_for_program(step)
                step = min(2 * step, _LOOK_AGAIN_S)
                continue
            except LineInUse as problem:
                if self._sent or not await self._turn.wait(problem):
                    raise
                continue
            except SessionExited:
                if not self._ended:
                    raise
            return

    async def _type_now(self) -> None:
        log, session, data = self._log, self._session, self._data
        if log is not None:
            self._at_prompt = log.phase in ("prompt", "prompting")
            self._running_before = log.current.id if log.current is not None else 0
            if self._at_prompt and b"\t" in data:
                data = quote_tabs(data, log.shell)
        if b"\t" in data and not self._at_prompt:
            data = await self._typing.quote_foreign_tabs(data)
        if log is not None and self._at_prompt and self._several:
            *lines, data = data.splitlines(keepends=True)
            self.generation = await self._typing.type_lines(lines, log, self._begin)
            await self._typing.type_next(data, self._note_before)
            return
        self.generation = await session.input.send(data, self._actor, before=self._begin)

    async def _begin(self) -> bytes:
        """Called when nobody else can type: the line is free, and from now on everything counts."""
        prefix = await self._turn.check()
        if self._log is not None and self._at_prompt != (self._log.phase in ("prompt", "prompting")):
            raise LineMoved
        if await self._is_program_busy():
            raise _ProgramBusy
        if not self.answers:
            await self._refuse_question()
        await self._hear_out()
        self._alt_before = self._session.terminal.alt
        self._sent = time.monotonic()
        self._note_before()
        return prefix

    async def _hear_out(self) -> None:
        """Parse what was printed before the input. Raises LineMoved where that tells that the command in front has ended."""
        log, session = self._log, self._session
        if log is None or self._at_prompt or session.terminal.alt:
            for _ in range(_PARSE_TURNS):
                if not session.output.backlog():
                    return
                await asyncio.sleep(_HANDOVER_S)
            return
        until = min(time.monotonic() + _HEARING_S, self._deadline)
        while not await has_heard_all(session) and time.monotonic() < until:
            self._wake.clear()
            await self._typing.pause(_HANDOVER_S)
        if log.phase in ("prompt", "prompting"):
            raise LineMoved

    async def _is_program_busy(self) -> bool:
        """Whether a line typed now would wait in the kernel, and stand in the output of a program that does not want it."""
        session, log = self._session, self._log
        if self._at_prompt or not self._is_line or session.terminal.alt:
            return False
        seen = await self._typing.inspect()
        if seen is None or seen.reading != "no" or await self._pipeline_reads():
            return False
        # Without marks only a shell with job control is known to come back: it has put the program into a group of its own.
        return (log is not None and log.phase == "running") or is_another_in_front(session)

    async def _refuse_question(self) -> None:
        """Raises LineInUse where a command of the shell asks for something, which the input would answer."""
        log = self._log
        if log is None or log.phase != "running" or self._at_prompt or not self._is_line:
            return
        state = await self._session.look(jobs=False)
        if state.state in ("asks", "hidden"):
            command = log.current.command if log.current is not None else ""
            raise LineInUse(self._session.name, own=False, text=None, asks=command, hidden=state.state == "hidden")

    async def _wait_for_program(self, seconds: float) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise await self._busy()
        self._turn.announce()
        self._turn.begin_anew()
        self._wake.clear()
        await self._typing.pause(min(seconds, left))

    def _note_before(self) -> None:
        if self._log is not None:
            self._ended_before, self._prompts_before = len(self._ended), self._log.prompts_due
            self._empty_before = self._log.empty_lines

    # waiting

    async def _wait(self) -> RunOutcome:
        session, log = self._session, self._log
        while True:
            self._wake.clear()
            self._soon = False
            if session.closed:
                raise SessionNotFound(session.name)
            if not session.running:
                return await self._outcome("exit")
            if log is not None:
                told = await self._told(log)
                if told is not None:
                    return told
            now = time.monotonic()
            if now >= self._deadline:
                raise await self._timeout()
            quiet_at = max(session.last_activity, self._sent) + self._silence_s
            if now >= quiet_at and not session.output.backlog():
                outcome = await self._silent(now)
                if outcome is not None:
                    return outcome
                quiet_at = self._looked + _LOOK_AGAIN_S
            if self._soon:
                quiet_at = min(quiet_at, now + LOOK_SOON_S)
            await self._typing.pause(min(self._deadline, max(quiet_at, now + 0.001)) - time.monotonic())

    async def _told(self, log: CommandLog) -> RunOutcome | None:
        """What the shell's marks say has come of the input."""
        session = self._session
        if not self._at_prompt:
            if not self._ended or log.current is not None or not await self._all_taken(log):
                return None
        elif len(self._ended) == self._ended_before:
            nothing = log.empty_lines > self._empty_before
            # fish says nothing about Enter on nothing but a new prompt
            nothing = nothing or (log.shell == "fish" and log.prompts > self._prompts_before)
            if not nothing or log.phase != "prompt":
                return None
            if not self._ended:
                return replace(await self._outcome("prompt"), unfinished=log.continues)
        elif log.current is not None:
            return None
        await self._settle(log)
        if log.phase == "prompt":
            session.input.line.entered = (0.0, 0)  # every line that was typed has been answered
        return await self._outcome("command" if session.running else "exit")

    async def _settle(self, log: CommandLog) -> None:
        """Let the next prompt come, so that screen and next input find the shell reading."""
        if log.refused_line:
            await self._typing.clear_refused_line(log)
        until = time.monotonic() + self._typing.grace(log)
        while log.phase == "prompting" and self._session.running and time.monotonic() < until:
            self._wake.clear()
            await self._typing.pause(until - time.monotonic())

    async def _all_taken(self, log: CommandLog) -> bool:
        """Whether the shell has read every line that was typed and waits for more."""
        session = self._session
        self._soon = True
        if log.phase != "prompt":
            return False
        number = (log.prompts, log.finished, session.generation)
        if count_unread(session) != 0:
            return False
        seen = await self._typing.inspect()
        if seen is None:
            return False
        calm = seen.reading == "yes" or (
            seen.reading == "unknown" and time.monotonic() - session.last_activity > PROMPT_GRACE_S
        )
        # A shell that reads again has written everything that came of the line before it.
        return calm and await has_heard_all(session) and number == (log.prompts, log.finished, session.generation)

    async def _silent(self, now: float) -> RunOutcome | None:
        """Called after enough silence: does the program want something, or does it only take its time?"""
        if self._looked and now - self._looked < _LOOK_AGAIN_S:
            return None
        seen = await self._typing.inspect()
        self._looked = time.monotonic()
        if seen is None or seen.is_behind:
            return None
        wanted = wants_input(self._session, seen) or (seen.reading == "no" and await self._pipeline_reads())
        if self._wake.is_set() or self._session.last_activity > now:
            return None  # something has come while we looked: it is silent no more
        if wanted and not await has_heard_all(self._session):
            return None  # perhaps it is the shell that reads, and tells the end of the command
        if wanted:
            log = self._log
            reads_on = log is not None and self._at_prompt and log.current is None and log.phase != "running"
            return replace(await self._outcome("prompt", seen), unfinished=reads_on)
        told_inside = self._session.has_inner_shell and self._at_prompt
        if seen.relayed and seen.reading == "unknown" and not told_inside:
            # Another machine, or another user: nobody can tell. Or it starts or ends its program in this moment: look twice.
            before, self._unknown = self._unknown, True
            return await self._outcome("quiet", seen) if before else None
        self._unknown = False
        if self._log is not None and self._at_prompt:
            return None  # the shell will tell
        return await self._outcome("quiet", seen)

    async def _pipeline_reads(self) -> bool:
        """The first program of a pipeline does not read; perhaps another one does."""
        try:
            return wants_input(self._session, await self._session.inspect(jobs=True))
        except SessionExited:
            return False

    # telling

    async def _outcome(self, by: FinishedBy, seen: ProcessState | None = None) -> RunOutcome:
        outcome = await self._told_outcome(by)
        return replace(outcome, note=self._missing_integration(seen)) if seen is not None else outcome

    def _missing_integration(self, seen: ProcessState) -> str | None:
        """Once in a session: a shell inside of the shell that does not tell, and what to source in it."""
        session, front = self._session, seen.foreground
        if session.told_missing or session.has_inner_shell or session.terminal.alt or front is None:
            return None
        inside = shell_name(front.comm)
        if not seen.relayed and (not inside or front.pid == session.pid):
            return None
        session.told_missing = True
        name = inside or front.comm
        shell = name if name in ("bash", "zsh", "fish") else "bash"
        how = "wsh shell-integration fish | source" if shell == "fish" else f"source <(wsh shell-integration {shell})"
        return (
            f"A shell inside of the session's shell ({name}) does not tell when commands end, so runs in it end on silence. "
            f"`{how}` there changes that; where wsh is not installed, source the text that `wsh shell-integration` prints."
        )

    async def _told_outcome(self, by: FinishedBy) -> RunOutcome:
        session, log = self._session, self._log
        if by in ("command", "exit") and self._ended:
            last = self._ended[-1][0]
            durations = [c.duration_ms for c, _ in self._ended if c.duration_ms is not None]
            return RunOutcome(
                by,
                session.generation,
                session.exit_code if by == "exit" else last.exit_code,
                await self._output(),
                round(sum(durations), 3) if durations else None,
                last.pipestatus,
                last.id,
                tuple(c.id for c, _ in self._ended),
                await self._jobs(),
            )
        if by == "exit":
            return RunOutcome(by, session.generation, session.exit_code, await self._since_input())
        running = log.current if log is not None else None
        if log is not None and running is not None and self._at_prompt:
            capture = log.captured(running)
            text = await capture.render(running.rows, running.cols, self._max_output) if capture else None
            return RunOutcome(by, session.generation, output=text, command_id=running.id, commands=(running.id,))
        # What a program paints on the whole screen is read from the screen.
        text = None if session.terminal.alt else await self._since_input()
        number = running.id if running is not None else None
        return RunOutcome(by, session.generation, output=text, command_id=number)

    async def _output(self) -> OutputText:
        new = [(command, capture) for command, capture in self._ended if command.id > self._running_before]
        if new and not self._at_prompt:
            self._ended, self._at_prompt = new, True  # what was running ended, and then the shell ran the input
        if len(self._ended) > 1 and self._at_prompt and all(c is not None and c.complete for _, c in self._ended):
            # As one stream: a line that one command left open goes on with the next.
            raw = b"".join(_FISH_PROLOGUE.sub(b"", c.newest) for _, c in self._ended if c is not None)
            first = self._ended[0][0]
            return await render(raw, first.rows, first.cols, self._max_output)
        parts = [await self._output_of(command, capture) for command, capture in self._ended]
        if len(parts) == 1:
            return parts[0]
        return OutputText(
            "\n".join(part.text for part in parts if part.text),
            sum(part.total_bytes for part in parts),
            sum(part.total_lines for part in parts),
            sum(part.omitted_bytes for part in parts),
            sum(part.omitted_lines for part in parts),
        )

    async def _output_of(self, command: Command, capture: Capture | None) -> OutputText:
        if not self._at_prompt:
            return await self._since_input(command.end)
        if capture is None:
            return await read_output(self._session, command, self._max_output)
        if capture.end == capture.begin:
            return OutputText("", 0, 0)
        return await capture.render(command.rows, command.cols, self._max_output)

    async def _since_input(self, end: int | None = None) -> OutputText:
        """What came after the input, for a program that was running already; rendered as the command's whole output is."""
        session = self._session
        raw = await asyncio.to_thread(session.output.read_recent, self.generation)
        if end is not None:
            raw = raw[: max(0, end - self.generation)]
        if self._alt_before:
            raw = _ENTER_ALT + raw  # what was drawn there before the program left it is no output
        return await render(raw, session.rows, session.cols, self._max_output)

    async def _jobs(self) -> tuple[ProcessInfo, ...]:
        session = self._session
        jobs: tuple[ProcessInfo, ...] = ()
        for _ in range(_FORK_LOOKS):
            if not session.running:
                return ()
            orphans = session.list_orphans()
            jobs = orphans
            if _has_children(session.pid):
                try:
                    state = await session.inspect(jobs=True)
                except SessionExited:
                    return orphans
                known = {job.pid for job in state.jobs}
                jobs = (*state.jobs, *(orphan for orphan in orphans if orphan.pid not in known))
            # A moment after the fork a job still goes by the shell's own name.
            if not any(_is_copy_of(job.pid, session.pid) for job in jobs):
                break
            await asyncio.sleep(_FORK_PAUSE_S)
        return jobs

    async def _timeout(self) -> WaitTimeout:
        session, log = self._session, self._log
        running = log.current if log is not None else None
        what = f"Command {running.id}" if running is not None else "The program"
        return WaitTimeout(
            f"{what} in session {session.name!r} is still running after {self._max_wait_ms} ms; it goes on.",
            timeout_ms=self._max_wait_ms,
            hint=(
                "Wait on with a wait for `command` (wsh_await_quiesce, GET …/idle, wsh wait), read its output by its "
                "command id, or send Ctrl+C to end it."
            ),
            **await self._facts(),
        )

    async def _busy(self) -> WaitTimeout:
        facts = await self._facts()
        front = facts.get("foreground") or {"argv": [], "name": "a program"}
        words = " ".join(front["argv"]) or front["name"]
        return WaitTimeout(
            f"`{words[:_SHOWN]}` still runs in session {self._session.name!r} and reads nothing; nothing was typed within {self._max_wait_ms} ms.",
            timeout_ms=self._max_wait_ms,
            hint=(
                "Wait for `prompt` (wsh_await_quiesce, GET …/idle, wsh wait) and run it again, use another session, or send Ctrl+C to end "
                "what runs. Input that it is to read later can be sent without waiting."
            ),
            busy=True,
            **facts,
        )

    async def _not_ready(self) -> WaitTimeout:
        waited_ms = min(self._first_prompt_ms, self._max_wait_ms)
        return WaitTimeout(
            f"The shell in session {self._session.name!r} has not shown its first prompt within {waited_ms} ms; nothing was typed.",
            timeout_ms=waited_ms,
            hint=(
                "Its startup files take long. Run again with a longer limit (`max_wait_ms`; the setting session.first_prompt_ms "
                "bounds it too), wait for `prompt`, or look at the screen."
            ),
            **await self._facts(),
        )

    async def _facts(self) -> JsonObject:
        """What a timeout tells of the session."""
        session, log = self._session, self._log
        running = log.current if log is not None else None
        screen = session.terminal.screen(styled=False)
        facts: JsonObject = {
            "session": session.name,
            "generation": session.generation,
            "command_id": running.id if running is not None else None,
            "screen": {
                "lines": [str(line) for line in screen.lines],
                "cursor": {"row": screen.cursor.row, "col": screen.cursor.col, "visible": screen.cursor.visible},
                "rows": screen.rows,
                "cols": screen.cols,
                "mode": screen.mode,
            },
        }
        front = await self._typing.inspect()
        if front is not None and front.foreground is not None:
            facts["foreground"] = describe_process(front.foreground)
            facts["input_wanted"] = front.reading
        return facts


def _is_copy_of(pid: int, shell: int) -> bool:
    """Whether `pid` runs with the very words of the shell, as a fork does that has executed nothing yet."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as job, open(f"/proc/{shell}/cmdline", "rb") as own:
            return job.read(4096) == own.read(4096)
    except OSError:
        return False


def _has_children(pid: int) -> bool:
    """Whether the shell has any child at all; asking for the whole list costs a walk over /proc."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return bool(file.read(64).strip())
    except OSError:
        return True
