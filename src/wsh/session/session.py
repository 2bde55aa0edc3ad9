"""One session: a name, a child on a pty, a terminal, and the truth about them.

`output` brings what the child prints into the terminal. `generation` is the number of bytes parsed so
far: it grows with every output and nothing else, and it is the same after a restart. Input notes the generation of everything printed
*before* the write, so that a wait for something newer can never be satisfied by an older screen.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from wsh.process import ChildHandle, InputClosed, KeeperClient, ProcessInfo, ProcessState
from wsh.sandbox.hold import Holding
from wsh.session import event as ev
from wsh.session.command.command import Command, CommandLog
from wsh.session.command.line import REPORTS, LineInfo, TypedLine
from wsh.session.command.output import OutputPage, OutputText, rendering
from wsh.session.command.run import RunOutcome, run_command, type_command
from wsh.session.command.turn import count_unread, look_at_line, read_modes, refuse_over_another
from wsh.session.event import SERVER, Actor, Listeners, SessionEvent
from wsh.session.output.feed import OutputFeed
from wsh.session.record.journal import Journal
from wsh.session.record.playback import read_output, read_output_page
from wsh.session.record.store import SessionFolder, Snapshot
from wsh.session.recovery.note import Notes, size_word
from wsh.session.shell.nesting import Shells
from wsh.session.spec import SessionLaunch
from wsh.session.state import SessionState, Truth, look
from wsh.session.wait.wait import WaitResult, WaitSpec, wait_until
from wsh.terminal import Terminal
from wsh.terminal.engine.note import Work
from wsh.wire.error import CommandNotFound, KeeperGone, LimitReached, SessionExited, SessionTaken, WaitTimeout
from wsh.wire.json.object import JsonObject
from wsh.wire.name import check_size, check_tag
from wsh.wire.system.moment import Moment, read_moment

_MESSAGES = 64

ENTERED_S = 1.0
"""How long a shell may take to say that it has begun what Enter started; asking for more lines it may say nothing."""


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


class Session:
    """Made by the registry, which also restores and destroys it."""

    def __init__(
        self,
        *,
        sid: str,
        name: str,
        launch: SessionLaunch,
        terminal: Terminal,
        folder: SessionFolder,
        keeper: KeeperClient,
        child: ChildHandle | None,
        actor: Actor,
        keep: bool = False,
        created: float | None = None,
        offset: int = 0,
        limits: InputLimits | None = None,
        commands: CommandLog | None = None,
        notes: Notes | None = None,
        holding: Holding | None = None,
    ) -> None:
        self.sid = sid
        self.name = name
        self.command = launch.command
        self.argv = launch.argv
        self.start_cwd = launch.cwd
        self.tags: tuple[str, ...] = launch.tags
        self.rows, self.cols = launch.rows, launch.cols
        self.borrowed_rows = 0
        """Rows that what is drawn around the screen took from it; they come back if this server dies."""
        self.terminal = terminal
        self.folder = folder
        self.child = child
        self.holding = holding
        """The sandbox that it is in; None for an open session."""
        self.gate: Callable[[Session, Actor, bytes], None] | None = None
        """Raises where that actor may not type these bytes."""
        self._pid = child.pid if child is not None else 0
        self.created_by = actor
        self.keep = keep
        self.created = time.time() if created is None else created
        self.exit_code: int | None = None
        self.exit_signal: int | None = None
        self.end: Moment | None = None
        """When its program ended."""
        self.first_size = (launch.rows, launch.cols)
        self.running = child is not None
        self.messages: deque[tuple[int, ev.Notification]] = deque(maxlen=_MESSAGES)
        """What its programs said to the person (OSC 9, OSC 777), with the offset behind it, until somebody takes it."""
        self.heard = 0
        """In a restore: the offset up to which an earlier server passed them on."""
        self.taken_by: str | None = None
        self.last_input: tuple[Actor, float] | None = None
        self.line = TypedLine(changed=self.remember)
        """What has been typed since the last Enter, and by whom."""
        self.full_screen_line = TypedLine(changed=self.remember)
        """The same for full-screen programs, which read keys rather than lines: only that something was typed counts."""
        self.told_missing = False
        """A run has said that a shell inside does not tell."""
        self.run_waits: tuple[Actor, str] | None = None
        """Whose run waits until the line is free, and what it is."""
        self.interrupted: tuple[float, int] = (0.0, 0)
        """When Ctrl+C was last typed, and how many prompts the shell had shown before."""
        self.last_activity = time.monotonic()
        self.listeners: Listeners[SessionEvent] = Listeners()
        self.lock = asyncio.Lock()
        """Held by one `run_command` at a time."""
        self._agent_defaults = launch.agent_defaults
        self._shells = Shells(commands, self.remember) if commands is not None else None
        """What the shells' marks tell; None for a program without them."""
        self.snapshot_offset = offset
        self._keeper = keeper
        self._writing = asyncio.Lock()
        self._limits = limits or InputLimits()
        self._waiting_bytes = 0
        self._remembering: asyncio.Task[None] | None = None
        self._remember_again = False
        self._remembered: JsonObject | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lasting: set[asyncio.Task[None]] = set()
        self._journal_state = "ok"
        self._closed = False
        self.output = OutputFeed(self, offset, self._shells, notes, self._limits.engine_timeout_s)

    def __repr__(self) -> str:
        return f"<Session {self.name}>"

    # what it is

    @property
    def pid(self) -> int:
        """Of the program that was asked for, as seen from outside a sandbox."""
        if self.child is not None and self.child.wrapped and self._pid == self.child.pid:
            self._pid = self.child.find_program()
        return self._pid

    @pid.setter
    def pid(self, pid: int) -> None:
        self._pid = pid

    @property
    def generation(self) -> int:
        return self.output.offset

    @property
    def title(self) -> str:
        return self.terminal.title

    @property
    def cwd(self) -> str:
        """Where the shell says it is, else where it was started."""
        return self.terminal.cwd or self.start_cwd

    @property
    def last_activity_ms(self) -> int:
        """Milliseconds since the last output."""
        return max(0, int((time.monotonic() - self.last_activity) * 1000))

    @property
    def commands(self) -> CommandLog | None:
        """What the marks of the innermost shell that tells say; None for a program without them."""
        return None if self._shells is None else self._shells.innermost

    @property
    def nonces(self) -> tuple[str, ...]:
        """The secrets in the marks of its shells; they must not leave by any door."""
        return () if self._shells is None else self._shells.nonces

    @property
    def journal(self) -> Journal:
        """Output for parsers: without the parts that kill the engine, and without the nonce."""
        return Journal(self.folder.path, self.output.gaps, self.nonces)

    @property
    def ended(self) -> float | None:
        """When its program ended, by the clock on the wall."""
        return self.end.wall if self.end is not None else None

    @property
    def ended_s(self) -> float:
        """How long ago its program ended; an end in the future, under a clock that was wrong, is one that is just over."""
        return max(0.0, self.end.age(read_moment())) if self.end is not None else 0.0

    @property
    def journal_state(self) -> str:
        """`ok`; `full` while the disk refuses what is printed; `off` where the setting says so."""
        state = self.child.ring.journal_state if self.child is not None else self._journal_state
        return "full" if state == "ok" and self.folder.missing else state

    @property
    def agent_defaults(self) -> dict[str, str]:
        """Variables that were set to keep programs from waiting for a person; none for a person's session."""
        return self._agent_defaults

    @property
    def notice(self) -> str | None:
        """What its screen lacks because the engine cannot have it; None if it lacks nothing."""
        if self.output.set_aside:
            return (
                "wsh set it aside, because its terminal engine died of it again and again: the program runs and its output "
                f"is kept in the journal, but not shown ({self.output.gaps.size} bytes so far)"
            )
        if self.terminal.mended:
            return "wsh had to begin its screen anew, because its terminal engine lost its state"
        if not self.output.gaps.size:
            return None
        return f"wsh left out {self.output.gaps.size} bytes that its terminal engine cannot parse"

    def describe(self) -> JsonObject:
        """What the keeper and the folder remember of it, enough to restore it."""
        return {
            "sid": self.sid,
            "name": self.name,
            # The keeper remembers 64 KiB of a child. What is longer was for the program, not for a list of sessions.
            "command": self.command[:2000],
            "argv": [word[:200] for word in self.argv[:16]],
            "cwd": self.start_cwd,
            "rows": self.rows,
            "cols": self.cols,
            "borrowed_rows": self.borrowed_rows,
            "tags": list(self.tags),
            "pid": self.pid,
            "created": self.created,
            "created_by": [self.created_by.kind, self.created_by.id],
            "keep": self.keep,
            "running": self.running,
            "exit_code": self.exit_code,
            "exit_signal": self.exit_signal,
            "ended": self.ended,
            "ended_boot": None if self.end is None else [self.end.boot, self.end.up],
            "first_size": list(self.first_size),
            "agent_defaults": self._agent_defaults,
            "left_out": [list(part) for part in self.output.gaps],
            "marks": None if self._shells is None else [self._shells.root.shell, self._shells.root.nonce],
            "inner_nonces": [] if self._shells is None else list(self._shells.inner_nonces),
            "sandbox": None if self.holding is None else self.holding.to_facts(),
        }

    def recall(self, facts: JsonObject, meta: JsonObject) -> None:
        """Restores state from a snapshot and a description."""
        self.output.lost_bytes = int(facts.get("lost_bytes", 0))
        if self._shells is not None:
            self._shells.recall(str(nonce) for nonce in meta.get("inner_nonces") or ())
            self._shells.root.recall(facts.get("commands") or {})
        rows, cols = meta.get("first_size") or (self.rows, self.cols)
        self.first_size = (int(rows), int(cols))
        if meta.get("line") and meta.get("running"):
            self.line.recall(meta["line"])
        if meta.get("keys_open") and meta.get("running"):
            modes = read_modes(self.child)
            if modes is not None:
                self.full_screen_line.restore("", SERVER, time.time(), modes)
        if not meta.get("running"):
            self.running = False
            self.exit_code, self.exit_signal = meta.get("exit_code"), meta.get("exit_signal")
            boot, up = meta.get("ended_boot") or ("", 0.0)
            self.end = Moment(float(meta.get("ended") or self.created), str(boot), float(up))

    # input

    async def send_input(
        self, data: bytes, actor: Actor, *, before: Callable[[], Awaitable[bytes]] | None = None
    ) -> int:
        """Write `data` to the child and return the generation from before the write.

        `before` is awaited while no other input can come between, may refuse by raising, and returns bytes to write first. Returns when the kernel has taken all of it. Raises SessionExited, SessionTaken (agents, while a person has taken
        over), LimitReached if too much waits already, or WaitTimeout if the child does not read for too long: then the
        rest is dropped, and the error says how much was written.
        """
        self._check_input(actor, data)
        if self._waiting_bytes + len(data) > self._limits.waiting_bytes:
            raise LimitReached("bytes of waiting input", self._limits.waiting_bytes, "session.input_bytes")
        self._waiting_bytes += len(data)
        try:
            async with self._writing:
                child = self._check_input(actor, data)
                if before is not None:
                    data = await before() + data
                    child = self._check_input(actor, data)
                generation = child.ring.head
                self._note_input(data, actor)
                await self._write(child, memoryview(data))
                self.last_input = (actor, time.monotonic())  # the write may have waited for the child
        finally:
            self._waiting_bytes -= len(data)
        self.listeners.tell(ev.Input(actor, len(data), generation))
        return generation

    async def type_input(self, data: bytes, actor: Actor) -> int:
        """As `send_input`, for programs: raises LineInUse where text that somebody else typed stands on the line."""
        return await self.send_input(data, actor, before=lambda: refuse_over_another(self, data, actor))

    async def look_at_line(self) -> LineInfo | None:
        """What stands on the line now; None if nothing does, or nobody reads lines."""
        async with self.holding_input():
            return await look_at_line(self)

    @asynccontextmanager
    async def holding_input(self) -> AsyncIterator[None]:
        """Nobody's input is written meanwhile; keep it short."""
        async with self._writing:
            yield

    def announce_wait(self, actor: Actor | None, command: str) -> None:
        """Tell everybody who looks that a run waits for the line; None when it no longer does."""
        self.run_waits = (actor, command) if actor is not None else None
        self.listeners.tell(ev.RunWaitChanged(actor, command))

    def keep_until_done(self, work: Coroutine[object, object, None]) -> None:
        """Work in the background that the end of the session waits for."""
        task = asyncio.ensure_future(_forgiving(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def start_task(self, work: Coroutine[object, object, None]) -> None:
        """Work of the session's own that outlives the call that began it; it ends with the session."""
        task = asyncio.ensure_future(_forgiving(work))
        self._lasting.add(task)
        task.add_done_callback(self._lasting.discard)

    def send_at_once(self, data: bytes, actor: Actor) -> int:
        """Write what the kernel takes now and return how many bytes that were; none while other input is under way.

        Raises SessionExited, or SessionTaken as `send_input` does. A key that a person pressed waits for nobody this way.
        """
        child = self._check_input(actor, data)
        if self._writing.locked():
            return 0
        generation = child.ring.head
        try:
            count = child.write(data)
        except InputClosed:
            raise SessionExited(self.name, self.exit_code) from None
        if count:
            self._note_input(data[:count], actor)
            self.listeners.tell(ev.Input(actor, count, generation))
        return count

    def _note_input(self, data: bytes, actor: Actor) -> None:
        now = time.monotonic()
        self.last_input = (actor, now)
        modes = read_modes(self.child)
        if modes is not None and self.terminal.alt and not modes.canonical:
            self.full_screen_line.note(REPORTS.sub(b"", data), actor, modes, now, time.time())
        elif modes is not None:
            log = self.commands
            asked = log.asked if log is not None and log.phase in ("prompt", "prompting") else None
            self.line.note(data, actor, modes, now, time.time(), asked, lambda: count_unread(self))
        if b"\x03" in data:
            self.interrupted = (time.monotonic(), self.commands.prompts if self.commands is not None else 0)

    async def _write(self, child: ChildHandle, data: memoryview) -> None:
        written = 0
        deadline = time.monotonic() + self._limits.timeout_ms / 1000
        try:
            while written < len(data):
                count = child.write(data[written:])
                written += count
                if not count:
                    async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                        await child.wait_until_writable()
        except InputClosed:
            raise SessionExited(self.name, self.exit_code) from None
        except TimeoutError:
            raise WaitTimeout(
                f"The program in session {self.name!r} does not read its input; {written} of {len(data)} bytes were written.",
                timeout_ms=self._limits.timeout_ms,
                hint="Look at the screen: it may need Ctrl+C or Ctrl+Q, or more time.",
                written=written,
            ) from None

    def _check_input(self, actor: Actor, data: bytes) -> ChildHandle:
        if not self.running or self.child is None:
            raise SessionExited(self.name, self.exit_code)
        if self.taken_by is not None and actor.kind == "agent":
            raise SessionTaken(self.name, self.taken_by)
        if self.gate is not None:
            self.gate(self, actor, data)
        return self.child

    def take_over(self, by: str) -> None:
        """A person wants the keyboard: agents' input is refused until `hand_back`."""
        if self.taken_by != by:
            self.taken_by = by
            self.listeners.tell(ev.TakenOver(by))

    def hand_back(self) -> None:
        if self.taken_by is not None:
            self.taken_by = None
            self.listeners.tell(ev.TakenOver(None))

    def resize(self, rows: int, cols: int) -> None:
        rows, cols = check_size(rows, cols)
        if (rows, cols) == (self.rows, self.cols):
            return
        self.rows, self.cols = rows, cols
        with self.output.during(Work.RESIZE, size_word(rows, cols)):
            self.terminal.resize(rows, cols)
        if self.running and self.child is not None:
            self.child.resize(rows, cols, self.generation)
        self.remember()
        self.listeners.tell(ev.Resized(rows, cols))

    # waiting

    async def wait(self, spec: WaitSpec) -> WaitResult:
        return await wait_until(self, spec)

    async def wait_until_quiet(
        self, timeout_ms: int, max_wait_ms: int = 30_000, generation: int | None = None, fresh: bool = False
    ) -> WaitResult:
        return await wait_until(
            self, WaitSpec(quiet_ms=timeout_ms, max_wait_ms=max_wait_ms, generation=generation, fresh=fresh)
        )

    async def wait_until_text(
        self,
        text: str | None = None,
        *,
        regex: str | None = None,
        generation: int | None = None,
        max_wait_ms: int = 30_000,
    ) -> WaitResult:
        """Until `text` or `regex` is printed: from now on, or after `generation`."""
        return await wait_until(self, WaitSpec(text=text, regex=regex, generation=generation, max_wait_ms=max_wait_ms))

    async def wait_until_exit(self, max_wait_ms: int = 30_000) -> WaitResult:
        return await wait_until(self, WaitSpec(exit=True, max_wait_ms=max_wait_ms))

    async def inspect(self, *, jobs: bool = False) -> ProcessState:
        """What the kernel knows about the foreground program; `jobs` costs a walk over /proc. Raises SessionExited."""
        if not self.running or self.child is None:
            raise SessionExited(self.name, self.exit_code)
        return await self._keeper.inspect(self.child, jobs=jobs)

    def list_orphans(self) -> tuple[ProcessInfo, ...]:
        """Programs that a command left behind outside of the terminal's session, such as daemons."""
        return self._keeper.list_orphans(self.child) if self.child is not None else ()

    async def look(self, *, jobs: bool = True) -> SessionState:
        """What it waits for: see `state`."""
        return await look(self, jobs=jobs)

    async def run_command(
        self,
        text: str | bytes,
        actor: Actor,
        *,
        enter: bool = True,
        timeout_ms: int = 2000,
        max_wait_ms: int = 30_000,
        max_output_bytes: int = 64 * 1024,
        clear_line: bool = False,
    ) -> RunOutcome:
        """Type `text` and wait for what comes of it: see `run`."""
        with rendering(self.output, self.generation, None):
            return await run_command(
                self,
                text,
                actor,
                enter=enter,
                timeout_ms=timeout_ms,
                max_wait_ms=max_wait_ms,
                max_output_bytes=max_output_bytes,
                clear_line=clear_line,
                line_wait_ms=self._limits.line_wait_ms,
                first_prompt_ms=self._limits.first_prompt_ms,
            )

    async def type_command(self, text: str, actor: Actor, max_wait_ms: int = 30_000) -> None:
        """Type a command onto an empty line, without waiting for its end: see `run`."""
        await type_command(
            self,
            text,
            actor,
            max_wait_ms=max_wait_ms,
            line_wait_ms=self._limits.line_wait_ms,
            first_prompt_ms=self._limits.first_prompt_ms,
        )

    @property
    def has_inner_shell(self) -> bool:
        """Whether a shell inside of the one that wsh started tells what it does."""
        return self._shells is not None and self._shells.innermost is not self._shells.root

    # commands of an integrated shell

    @property
    def command_count(self) -> int:
        """Commands that have ended."""
        return 0 if self.commands is None else self.commands.finished

    @property
    def at_prompt(self) -> Truth:
        """Whether the shell that wsh started reads a command line."""
        if not self.running:
            return "no"
        if self.commands is None or self.commands.phase == "starting":
            return "unknown"
        if self.commands.phase != "prompt":
            return "no"
        entered, asked = self.line.entered
        if asked > self.commands.asked and time.monotonic() - entered < ENTERED_S:
            return "unknown"  # Enter was pressed, and the shell has not said yet what came of it
        return "yes"

    @property
    def last_ended_command(self) -> int | None:
        """Id of the newest command that has ended."""
        return next((c.id for c in reversed(self.list_commands()) if c.end is not None), None)

    def command_ended_since(self, count: int, generation: int | None) -> bool:
        """Whether a command ended after `count` others had, or after `generation` if that is given."""
        log = self.commands
        if log is None:
            return False
        if generation is None:
            return log.finished > count
        return any(c.end is not None and c.end > generation for c in reversed(list(log)[-16:]))

    def get_command(self, id: int) -> Command:
        """Raises CommandNotFound for one that is not in the history (any more)."""
        command = self.commands.find(id) if self.commands is not None else None
        if command is None:
            raise CommandNotFound(id)
        return command

    def list_commands(self) -> list[Command]:
        """Oldest first; none for a session without shell integration."""
        return list(self.commands) if self.commands is not None else []

    async def read_command_output(self, command: Command, max_bytes: int) -> OutputText:
        """What a command printed (so far) as text: see `playback`."""
        with rendering(self.output, command.start, command.end):
            return await read_output(self, command, max_bytes)

    async def read_output_page(
        self,
        command: Command,
        *,
        offset: int = 0,
        limit: int = 1000,
        styled: bool = False,
        search: str | None = None,
        regex: str | None = None,
    ) -> OutputPage:
        """Lines of a command's output by number; with `search` or `regex` only those that match."""
        with rendering(self.output, command.start, command.end):
            return await read_output_page(
                self, command, offset=offset, limit=limit, styled=styled, search=search, regex=regex
            )

    # what people call it

    def set_tags(self, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> None:
        added = {check_tag(tag) for tag in add} - set(self.tags)
        removed = {check_tag(tag) for tag in remove} & set(self.tags) - added
        if added or removed:
            self.tags = tuple(sorted((set(self.tags) | added) - removed))
            self.remember()
            self.listeners.tell(ev.TagsChanged(self.tags, tuple(sorted(added)), tuple(sorted(removed))))

    def rename(self, new: str) -> None:
        """Called by the registry, which keeps names unique."""
        old, self.name = self.name, new
        self.remember()
        self.listeners.tell(ev.Renamed(old, new))

    def remember(self) -> None:
        """Tell the keeper what we would want to know after a restart; soon, and only the newest of several."""
        if self._remembering is not None and not self._remembering.done():
            self._remember_again = True
        elif self.child is not None:
            self._remembering = asyncio.ensure_future(self._tell_keeper())
            self._tasks.add(self._remembering)
            self._remembering.add_done_callback(self._tasks.discard)

    async def _tell_keeper(self) -> None:
        self._remember_again = True
        try:
            while self._remember_again and self.child is not None:
                self._remember_again = False
                known = {**self.describe(), "line": self.line.facts(), "keys_open": self.full_screen_line.pending}
                if known != self._remembered:  # a line typed and completed at once leaves nothing new
                    await self._keeper.update_meta(self.child, known)
                    self._remembered = known
        except (KeeperGone, InputClosed, SessionExited):
            pass  # the end of the keeper or of the child, which others report

    async def settle(self) -> None:
        """Waits until pending metadata reaches the keeper."""
        for task in self._lasting:
            task.cancel()
        await asyncio.gather(*self._lasting, return_exceptions=True)
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # the end

    def finish(self, exit_code: int | None, signal: int | None) -> None:
        """The child ended and everything it printed has been parsed."""
        if not self.running:
            return
        self.running = False
        self.exit_code, self.exit_signal = exit_code, signal
        self.end = read_moment()
        self.taken_by = None
        if self.commands is not None and exit_code is not None:
            for event in self.commands.shell_exited(exit_code, self.generation):
                self.listeners.tell(event)
        self.listeners.tell(ev.Exited(exit_code, signal))

    def release_child(self) -> None:
        """Let go of ring and pty after the end; the screen stays."""
        if self.child is not None:
            self._journal_state = self.child.ring.journal_state
        self.child = None
        self.output.release()

    def _facts(self) -> JsonObject:
        facts: JsonObject = {"lost_bytes": self.output.lost_bytes}
        if self._shells is not None:
            facts["commands"] = self._shells.root.facts()
        return facts

    def make_snapshot(self) -> Snapshot:
        return Snapshot(self.generation, self._facts(), self.terminal.snapshot())

    @property
    def closed(self) -> bool:
        """Killed and forgotten: nothing can be read from it any more."""
        return self._closed

    def close(self) -> None:
        """Free the terminal. Idempotent; nothing can be read afterwards."""
        if not self._closed:
            self._closed = True
            for task in self._lasting:
                task.cancel()
            self.output.close()
            self.listeners.tell(ev.Destroyed(self.exit_code))
            self.terminal.close()


async def _forgiving(work: Coroutine[object, object, None]) -> None:
    """Background work whose failure is the end of the keeper or of the child, which others report."""
    try:
        await work
    except (KeeperGone, InputClosed, SessionExited):
        pass
