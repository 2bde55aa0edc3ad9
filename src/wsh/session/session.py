"""One session: a name, a child on a pty, a terminal, and the truth about them.

Its parts have one job each: `input` writes what is typed, `output` brings what the child prints into the terminal, `history` has
its commands, `memory` is what a successor of this server is told. `generation` is the number of bytes parsed so far: it grows with
every output and nothing else, and it is the same after a restart.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from wsh.process import ChildHandle, InputClosed, KeeperClient, ProcessInfo, ProcessState
from wsh.sandbox.hold import Holding
from wsh.session import event as ev
from wsh.session.command.command import CommandLog
from wsh.session.command.history import CommandHistory
from wsh.session.command.output import rendering
from wsh.session.command.run import RunOutcome, run_command, type_command
from wsh.session.command.turn import count_unread
from wsh.session.event import Actor, Listeners, SessionEvent
from wsh.session.input.session_input import InputLimits, SessionInput
from wsh.session.output.feed import OutputFeed
from wsh.session.record.journal import Journal
from wsh.session.record.memory import SessionMemory
from wsh.session.record.store import SessionFolder
from wsh.session.recovery.note import Notes, size_word
from wsh.session.shell.nesting import Shells
from wsh.session.spec import SessionLaunch
from wsh.session.state import SessionState, Truth, look
from wsh.session.wait.wait import WaitResult, WaitSpec, wait_until
from wsh.terminal import Terminal
from wsh.terminal.engine.note import Work
from wsh.wire.error import KeeperGone, SessionExited
from wsh.wire.name import check_size, check_tag
from wsh.wire.system.moment import Moment, read_moment
from wsh.wire.system.task_set import TaskSet

ENTERED_S = 1.0
"""How long a shell may take to say that it has begun what Enter started; asking for more lines it may say nothing."""


class Session:
    """Made by the registry, which also restores and destroys it."""

    # A dictionary for so many names takes 1.7 KB in every session.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_closed",
        "_journal_state",
        "_keeper",
        "_pid",
        "_taken_at",
        "agent_defaults",
        "argv",
        "borrowed_rows",
        "child",
        "cols",
        "command",
        "created",
        "created_by",
        "end",
        "exit_code",
        "exit_signal",
        "first_size",
        "folder",
        "heard",
        "history",
        "holding",
        "home_of",
        "input",
        "keep",
        "last_activity",
        "lasting",
        "listeners",
        "lock",
        "memory",
        "messages",
        "name",
        "output",
        "pending",
        "rows",
        "running",
        "shells",
        "sid",
        "snapshot_offset",
        "start_cwd",
        "tags",
        "terminal",
        "told_missing",
    )

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
        self._pid = child.pid if child is not None else 0
        self._taken_at = 0.0
        """When that input was typed of which it is known that the program in front has read it."""
        self.created_by = actor
        self.home_of = ""
        """The id of the caller who means it where they name no session."""
        self.keep = keep
        self.created = time.time() if created is None else created
        self.exit_code: int | None = None
        self.exit_signal: int | None = None
        self.end: Moment | None = None
        """When its program ended."""
        self.first_size = (launch.rows, launch.cols)
        self.running = child is not None
        self.messages: list[tuple[int, ev.Notification]] = []  # not a deque, which takes 0.7 KB where it is empty
        """What its programs said to the person (OSC 9, OSC 777), with the offset behind it, until somebody takes it."""
        self.heard = 0
        """In a restore: the offset up to which an earlier server passed them on."""
        self.told_missing = False
        """A run has said that a shell inside does not tell."""
        self.last_activity = time.monotonic()
        self.listeners: Listeners[SessionEvent] = Listeners()
        self.lock = asyncio.Lock()
        """Held by one `run_command` at a time."""
        self.pending = TaskSet(KeeperGone, InputClosed, SessionExited)
        """Work that the end of the session waits for."""
        self.lasting = TaskSet(KeeperGone, InputClosed, SessionExited)
        """Work that outlives the call which began it, and ends with the session."""
        self.agent_defaults = launch.agent_defaults
        """Variables that were set to keep programs from waiting for a person; none for a person's session."""
        self.snapshot_offset = offset
        self._keeper = keeper
        self._journal_state = "ok"
        self._closed = False
        limits = limits or InputLimits()
        self.memory = SessionMemory(self, keeper)
        self.shells = Shells(commands, self.memory.remember) if commands is not None else None
        """What the shells' marks tell; None for a program without them."""
        self.history = CommandHistory(self)
        self.input = SessionInput(self, limits, self.memory.remember_typing)
        self.output = OutputFeed(self, offset, self.shells, notes, limits.engine_timeout_s)

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
        return None if self.shells is None else self.shells.innermost

    @property
    def nonces(self) -> tuple[str, ...]:
        """The secrets in the marks of its shells; they must not leave by any door."""
        return () if self.shells is None else self.shells.nonces

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

    def resize(self, rows: int, cols: int) -> None:
        rows, cols = check_size(rows, cols)
        if (rows, cols) == (self.rows, self.cols):
            return
        self.rows, self.cols = rows, cols
        with self.output.during(Work.RESIZE, size_word(rows, cols)):
            self.terminal.resize(rows, cols)
        if self.running and self.child is not None:
            self.child.resize(rows, cols, self.generation)
        self.memory.remember()
        self.listeners.tell(ev.Resized(rows, cols))

    # waiting

    async def wait(self, spec: WaitSpec) -> WaitResult:
        return await wait_until(self, spec)

    async def inspect(self, *, jobs: bool = False) -> ProcessState:
        """What the kernel knows about the foreground program; `jobs` costs a walk over /proc. Raises SessionExited."""
        if not self.running or self.child is None:
            raise SessionExited(self.name, self.exit_code)
        seen = await self._keeper.inspect(self.child, jobs=jobs)
        typed = self.input.last
        if seen.reading != "yes" or typed is None or typed[1] == self._taken_at:
            return seen
        # It may not have been given the last input yet. To look for that waits until the kernel has handed it over.
        if count_unread(self):
            return replace(seen, reading="no", is_behind=True)
        if not self.running:
            raise SessionExited(self.name, self.exit_code)
        self._taken_at = typed[1]
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
        answer: bool = True,
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
                answer=answer,
                line_wait_ms=self.input.limits.line_wait_ms,
                first_prompt_ms=self.input.limits.first_prompt_ms,
            )

    async def type_command(self, text: str, actor: Actor, max_wait_ms: int = 30_000) -> None:
        """Type a command onto an empty line, without waiting for its end: see `run`."""
        await type_command(
            self,
            text,
            actor,
            max_wait_ms=max_wait_ms,
            line_wait_ms=self.input.limits.line_wait_ms,
            first_prompt_ms=self.input.limits.first_prompt_ms,
        )

    # commands of an integrated shell

    @property
    def has_inner_shell(self) -> bool:
        """Whether a shell inside of the one that wsh started tells what it does."""
        return self.shells is not None and self.shells.innermost is not self.shells.root

    @property
    def at_prompt(self) -> Truth:
        """Whether the shell that wsh started reads a command line."""
        if not self.running:
            return "no"
        if self.commands is None or self.commands.phase == "starting":
            return "unknown"
        if self.commands.phase != "prompt":
            return "no"
        entered, asked = self.input.line.entered
        if asked > self.commands.asked and time.monotonic() - entered < ENTERED_S:
            return "unknown"  # Enter was pressed, and the shell has not said yet what came of it
        return "yes"

    # what people call it

    def set_tags(self, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> None:
        added = {check_tag(tag) for tag in add} - set(self.tags)
        removed = {check_tag(tag) for tag in remove} & set(self.tags) - added
        if added or removed:
            self.tags = tuple(sorted((set(self.tags) | added) - removed))
            self.memory.remember()
            self.listeners.tell(ev.TagsChanged(self.tags, tuple(sorted(added)), tuple(sorted(removed))))

    def rename(self, new: str) -> None:
        """Called by the registry, which keeps names unique."""
        old, self.name = self.name, new
        self.memory.remember()
        self.listeners.tell(ev.Renamed(old, new))

    async def settle(self) -> None:
        """Waits until pending metadata reaches the keeper."""
        await self.lasting.aclose()
        self.memory.hurry()
        await self.pending.wait()

    # the end

    def finish(self, exit_code: int | None, signal: int | None) -> None:
        """The child ended and everything it printed has been parsed."""
        if not self.running:  # a server before this one had heard of the end, and not parsed all of it
            self.end_command()
            return
        self.running = False
        self.exit_code, self.exit_signal = exit_code, signal
        self.end = read_moment()
        self.input.taken_by = None
        self.end_command()
        self.listeners.tell(ev.Exited(exit_code, signal))

    def end_command(self) -> None:
        """The command that ran when the shell ended has ended with it. Idempotent; does nothing while the shell runs."""
        if self.commands is not None and not self.running and self.exit_code is not None:
            for event in self.commands.shell_exited(self.exit_code, self.generation):
                self.listeners.tell(event)

    def release_child(self) -> None:
        """Let go of ring and pty after the end; the screen stays."""
        if self.child is not None:
            self._journal_state = self.child.ring.journal_state
        self.child = None
        self.output.release()

    @property
    def closed(self) -> bool:
        """Killed and forgotten: nothing can be read from it any more."""
        return self._closed

    def close(self) -> None:
        """Free the terminal. Idempotent; nothing can be read afterwards."""
        if not self._closed:
            self._closed = True
            self.lasting.cancel()
            self.output.close()
            self.listeners.tell(ev.Destroyed(self.exit_code))
            self.terminal.close()
