"""A run's turn at the line: nothing is typed onto what somebody else has begun to type.

Whether the line is empty is asked of the shell that reads it, where that is one of ours: it answers a private key with its own
buffer. Elsewhere it is known from what was typed (see `line`), and only where a line is read at all: a shell in front, or a
terminal that collects lines. The question and the typing that follows it happen under one lock, so nobody's key comes between.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from wsh.process import ChildHandle
from wsh.session import event as ev
from wsh.session.command.command import CommandLog
from wsh.session.command.line import ASK, ASK_REST, PUT_BACK, TAKE, LineInfo, LineModes, ShellLine
from wsh.session.event import Actor, SessionEvent
from wsh.session.state import shell_name
from wsh.wire.error import LineInUse, SessionExited
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.session.session import Session

_TIOCGPTPEER = 0x5441
_ANSWER_S = 2.0
_SLOW_ANSWER_S = 10.0  # of a shell that has answered before: the machine is busy
_ENTERED_S = 0.5
_TYPING_S = 1.0
_NEW_PROMPT_S = 2.0
_READING_S = 2.0
_ECHO_S = 0.5
_SHOWN_CHARACTERS = 16
_DROPPING_S = 10.0
_INTERRUPTS = frozenset(b"\x03\x04\x1a\x1c")


class LineMoved(Exception):
    """The shell began something else between the look and the question: look again."""


def read_modes(child: ChildHandle | None) -> LineModes | None:
    """What the terminal does with a typed byte now. Quick; never waits."""
    if child is None or child.fd < 0:
        return None
    try:
        local = termios.tcgetattr(child.fd)[3]
        return LineModes(bool(local & termios.ICANON), bool(local & termios.ECHO), os.tcgetpgrp(child.fd))
    except (OSError, termios.error):
        return None


def count_unread(session: Session) -> int | None:
    """Bytes of input that the kernel holds and nobody has read yet, 0 only if there are none; None if that cannot be known."""
    child = session.child
    if child is None or child.fd < 0:
        return None
    try:
        peer = fcntl.ioctl(child.fd, _TIOCGPTPEER, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        _hand_over(peer)
        return int(struct.unpack("i", fcntl.ioctl(peer, termios.FIONREAD, bytes(4)))[0])
    except OSError:
        return None
    finally:
        os.close(peer)


def has_unseen_output(session: Session) -> bool:
    """Whether programs have written what the keeper has not read yet."""
    child = session.child
    return child is not None and child.fd >= 0 and _hand_over(child.fd)


async def has_heard_all(session: Session) -> bool:
    """Whether everything that programs had written before this call has been parsed.

    The kernel may say that a shell reads before we have heard its word of the command that ended. What it wrote is with the kernel or
    with the keeper, whose next answer comes after it has passed on what it had read.
    """
    generation = session.generation
    if has_unseen_output(session):
        return False
    try:
        await session.inspect()
    except SessionExited:
        return False
    return not session.output.backlog() and session.generation == generation


def _hand_over(end: int) -> bool:
    """Whether this end of a terminal can be read, with everything that the other end wrote before this call.

    A thread of the kernel carries it over, which on a busy machine takes a while. To poll an end that has nothing waits for that thread.
    """
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(0))


def is_another_in_front(session: Session) -> bool:
    """Whether a process group other than that of the session's own program has the terminal. Quick; never waits."""
    modes = read_modes(session.child)
    try:
        return modes is not None and modes.group != os.getpgid(session.pid)
    except OSError:
        return False


class LineTurn:
    """Made for one run. `check` is called with the session's input held."""

    def __init__(
        self, session: Session, actor: Actor, command: str, deadline: float, wait_s: float, *, clear: bool = False
    ) -> None:
        self._session = session
        self._actor = actor
        self._command = command
        self._last = deadline
        self._deadline = 0.0
        self._wait_s = wait_s
        self.begin_anew()
        self._clear = clear
        self.cleared: LineInfo | None = None
        self._kept = False
        self.put_back: str | None = None

    def begin_anew(self) -> None:
        """From now on a person who types is waited for as long as at first."""
        self._deadline = min(self._last, time.monotonic() + self._wait_s)

    # before the run

    async def check(self) -> bytes:
        """Raises LineInUse unless the line is empty; returns what has to be typed first, such as vi's `i`."""
        found, told = await _probe(self._session)
        if found is not None and self._clear and not self._is_being_typed(found):
            await self._take(found, told)
            found, told = await _probe(self._session)
        if found is not None:
            raise LineInUse(self._session.name, own=self._is_own(found), **found.to_wire())
        self._session.input.line.forget()
        return b"i" if told is not None and told.command_mode else b""

    async def check_still_ours(self) -> bytes:
        """Between two lines of one run: raises LineInUse if anybody else has typed since the last."""
        if any(actor != self._actor for actor in self._session.input.line.authors):
            raise LineInUse(self._session.name, own=False, **self._session.input.line.describe().to_wire())
        return b""

    async def wait(self, problem: LineInUse) -> bool:
        """Wait, visibly, while a person types. False if that is no use: the line stays as it is."""
        author, typed = problem.typed_by, self._session.input.line
        if author is None or author.get("kind") != "person" or time.monotonic() >= self._deadline:
            return False
        if problem.facts.get("own") and not self._clear:
            return False  # nobody waits for themselves
        if self._typing_age() >= (_TYPING_S if self._clear else self._wait_s):
            return False
        changed = asyncio.Event()
        log = self._session.commands
        asked = _asked(log)

        def hear(event: SessionEvent) -> None:
            if isinstance(event, ev.Input | ev.PromptShown | ev.CommandStarted | ev.Exited | ev.Destroyed):
                changed.set()

        stop = self._session.listeners.add(hear)
        self.announce()
        try:
            while typed.pending and _asked(log) == asked and self._session.running:
                left = self._deadline - time.monotonic()
                if self._clear:
                    left = min(left, _TYPING_S - self._typing_age())
                if left <= 0:
                    break
                changed.clear()
                await _wait(changed, left)
        finally:
            stop()
            self.end_announcement()
        return True

    def announce(self) -> None:
        """Tell everybody who looks that this run waits."""
        wanted = (self._actor, self._command)
        if self._session.input.run_waits != wanted:
            self._session.input.announce_wait(*wanted)

    def end_announcement(self) -> None:
        if self._session.input.run_waits is not None:
            self._session.input.announce_wait(None, "")

    def _typing_age(self) -> float:
        author = self._session.input.line.author
        # What seems to come from the future was typed before the clock was set back.
        return abs(time.time() - self._session.input.line.authors[author]) if author is not None else float("inf")

    def _is_being_typed(self, found: LineInfo) -> bool:
        """Taking a line away under a person's fingers would mix theirs with ours."""
        person = found.author is not None and found.author.kind == "person"
        return person and self._typing_age() < _TYPING_S and time.monotonic() < self._deadline

    def _is_own(self, found: LineInfo) -> bool:
        return found.author == self._actor and set(self._session.input.line.authors) <= {self._actor}

    async def _take(self, found: LineInfo, told: ShellLine | None) -> None:
        session, child = self._session, self._session.child
        assert child is not None
        log, modes = session.commands, read_modes(child)
        own = self._is_own(found)
        if told is not None and log is not None and not (told.continued and log.shell == "bash"):
            await _press(session, TAKE)
            self._kept = not own
        elif modes is not None and modes.canonical:
            child.write(_kill_character(child))
        else:
            child.write(b"\x03")
            asked = _asked(log)
            await _until(session, lambda: log is not None and _asked(log) != asked, _NEW_PROMPT_S if log else 0.2)
        session.input.line.forget()
        self.cleared = found

    # after the run

    async def give_back(self) -> None:
        """Put a person's line back where it was, now or at the shell's next prompt."""
        session, log = self._session, self._session.commands
        if not self._kept or log is None or not session.running:
            self.put_back = "no" if self.cleared is not None else None
            return
        self._kept = False
        if log.phase == "prompting":
            await _until(session, lambda: log.phase != "prompting", _NEW_PROMPT_S)
        if log.phase == "prompt":
            self.put_back = "yes" if await self._put(log) else "no"
        else:
            self.put_back = "later"
            session.lasting.start(self._put_later(log))

    async def _put_later(self, log: CommandLog) -> None:
        session = self._session
        while session.running and not session.closed:
            await _until(session, lambda: log.phase == "prompt", 3600.0)
            if await self._put(log):
                return
            await asyncio.sleep(0.05)

    async def _put(self, log: CommandLog) -> bool:
        session = self._session
        async with session.input.hold():
            modes = read_modes(session.child)
            if modes is None or log.phase != "prompt" or not _is_shell_reading(session, modes):
                return False
            told = await _press(session, PUT_BACK)
            if told is None:
                return False
            if self.cleared is not None and self.cleared.author is not None and told.text:
                session.input.line.restore(told.text, self.cleared.author, self.cleared.at or time.time(), modes)
        return True

    def describe(self) -> JsonObject | None:
        """What became of a line that was cleared."""
        if self.cleared is None:
            return None
        return {**self.cleared.to_wire(), "put_back": self.put_back or "no"}


async def refuse_over_another(session: Session, data: bytes, actor: Actor) -> bytes:
    """For input that is no run: raises LineInUse where the text of somebody else stands. Input is held."""
    others = {author for author in session.input.line.authors if author != actor}
    if not others:
        return b""
    if set(data) <= _INTERRUPTS and (actor.kind == "person" or session.at_prompt != "yes"):
        return b""  # ending a program is no typing
    found, _ = await _probe(session, patient=False)
    if found is None:
        return b""
    raise LineInUse(session.name, own=False, **found.to_wire())


async def look_at_line(session: Session) -> LineInfo | None:
    """What stands on the line. Input is held."""
    return (await _probe(session, patient=False))[0]


async def _probe(session: Session, *, patient: bool = True) -> tuple[LineInfo | None, ShellLine | None]:
    """What stands on the line (None: nothing, or nobody reads lines), and the shell's own answer if it gave one."""
    modes, log, typed = read_modes(session.child), session.commands, session.input.line
    if modes is None:
        return None, None
    if log is not None and _reads_line(log) and log.editor:
        entered, asked = typed.entered
        if asked > _asked(log) or count_unread(session):
            left = max(entered + _ENTERED_S - time.monotonic(), 0.05 if count_unread(session) else 0.0)
            await _until(session, lambda: _asked(log) >= asked or log.phase == "running", left)
        if not _reads_line(log):
            if patient:
                raise LineMoved
            return None, None
        modes = read_modes(session.child) or modes
        if patient and not typed.has_keys:
            modes = await _await_shell(session, log, modes)
        if _is_shell_reading(session, modes):
            age = abs(time.time() - max(typed.authors.values(), default=0.0))
            if typed.is_inside_key(log.editor, age) or (typed.has_keys and await _does_another_read(session)):
                return _left_alone(session), None
            key = ASK_REST if log.continues and log.shell == "bash" else ASK
            if log.shell == "fish" and _is_dropping(session, log):
                await _until_reading(session)
            told = await _ask(session, log, key)
            if told is not None and not told.empty and _is_dropping(session, log):
                # The line was dropped by Ctrl+C, and the shell has not come to that yet.
                told = await _wait_until_dropped(session, log)
            if told is not None:
                return _describe(session, told), told
            if patient and not _reads_line(log):
                raise LineMoved
            typed_since = log.typed_since_prompt()
            if typed_since or log.continues or log.lines_told:
                # The shell says nothing. What is shown behind its prompt counts; and one that has answered before is too busy to
                # say what stands there, so nothing may be typed.
                author = typed.describe()
                return LineInfo(typed_since or author.text, log.continues, author.author, author.at), None
            modes = read_modes(session.child) or modes
        elif typed.has_keys:
            return _left_alone(session), None  # a key of somebody's has started a program in front of the line
    until = time.monotonic() + _READING_S
    while not session.terminal.alt and typed.stands(modes, lambda: count_unread(session)):
        if modes.canonical:
            return typed.describe(), None
        if await _is_shell_in_front(session):
            found = typed.describe()
            return (found if await _is_shown(session, found.text) else replace(found, text=None)), None
        now, unread = read_modes(session.child), count_unread(session)
        if now is None or (now == modes and not unread):
            break
        if now == modes and time.monotonic() >= until:
            return typed.describe(), None
        if now == modes:
            await asyncio.sleep(0.002)  # one program has gone and the next is not in front yet, or is slow to read
        modes = now
    return None, None


async def _await_shell(session: Session, log: CommandLog, modes: LineModes) -> LineModes:
    """A shell that has shown its prompt and does not read has taken a line that was typed ahead; its mark is on the way.

    Raises LineMoved when that has come. A shell that only takes the terminal back reads a moment later.
    """
    until = time.monotonic() + _READING_S
    while not _is_shell_reading(session, modes) and session.running and time.monotonic() < until:
        await asyncio.sleep(0.002)
        if not _reads_line(log):
            raise LineMoved
        modes = read_modes(session.child) or modes
    return modes


async def _is_shown(session: Session, text: str | None) -> bool:
    """Whether the screen shows what was typed: what somebody behind a relay asks for may be a password."""
    wanted = "".join(re.findall(r"[^\s\x00-\x1f]", text or ""))[-_SHOWN_CHARACTERS:]

    def shows() -> bool:
        lines = session.terminal.screen(styled=False).lines
        return wanted in "".join("".join(str(line).split()) for line in lines)

    await _until(session, shows, _ECHO_S)
    return shows()


def _left_alone(session: Session) -> LineInfo:
    """The line of somebody who is in the middle of something, such as a search or a menu."""
    found = session.input.line.describe()
    return LineInfo(found.text or None, False, found.author, found.at)


async def _does_another_read(session: Session) -> bool:
    """Whether a program that the shell runs for a key, such as a menu, reads the terminal in its place. It may be about to."""
    until = time.monotonic() + _READING_S
    while not session.has_inner_shell:
        try:
            seen = await session.inspect()
        except SessionExited:
            return False
        if seen.reading != "no":
            return seen.reader is not None and seen.reader != session.pid
        if time.monotonic() >= until:
            return True
        await asyncio.sleep(0.002)
    return False


def _describe(session: Session, told: ShellLine) -> LineInfo | None:
    if told.empty:
        session.input.line.forget()
        return None
    typed = session.input.line.describe()
    text, log = told.before + told.text, session.commands
    if told.continued and not text and log is not None:
        text = log.typed_since_prompt()  # bash does not tell lines of a command that it has read
    return LineInfo(text, told.continued, typed.author, typed.at)


async def _ask(session: Session, log: CommandLog, key: bytes) -> ShellLine | None:
    """Ask for the line. A shell that drops its line for Ctrl+C only now shows a new prompt instead of an answer: ask again."""
    for _ in range(3):
        prompts = log.prompts
        told = await _press(session, key)
        if told is not None or log.prompts == prompts:
            return told
        await _until(session, lambda: log.phase != "prompting", _NEW_PROMPT_S)
        if not _reads_line(log):
            return None
    return None


async def _press(session: Session, key: bytes) -> ShellLine | None:
    """Press a private key and wait for the shell's word; None if it says nothing. Input is held."""
    child, log = session.child, session.commands
    if child is None or log is None:
        return None
    told, asked, phase = log.lines_told, log.prompts, log.phase
    if child.write(key) != len(key):
        return None

    def answered() -> bool:
        return log.lines_told != told or log.prompts != asked or (log.phase == "running" and phase != "running")

    await _until(session, answered, _SLOW_ANSWER_S if told else _ANSWER_S)
    if log.lines_told == told:
        return None
    if log.shell == "fish":
        await _until_reading(session)
    return log.line


def _is_dropping(session: Session, log: CommandLog) -> bool:
    """Whether Ctrl+C was typed a moment ago and the shell has shown no prompt since."""
    at, prompts = session.input.interrupted
    return log.prompts == prompts and time.monotonic() - at < _DROPPING_S


async def _wait_until_dropped(session: Session, log: CommandLog) -> ShellLine | None:
    """Ask again when the prompt that follows Ctrl+C has come."""
    prompts = log.prompts
    await _until(session, lambda: log.prompts != prompts, _NEW_PROMPT_S)
    told = await _press(session, ASK)
    child = session.child
    lost = log.shell == "fish" and log.prompts == prompts and told is not None and not told.empty
    if lost and child is not None and not session.input.line.pending:
        # It came while fish ran what a key is bound to, which fish forgets. Nobody has typed since: the line is to be dropped.
        child.write(b"\x03")
        await _until(session, lambda: log.prompts != prompts, _SLOW_ANSWER_S)
        told = await _press(session, ASK)
    return told


async def _until_reading(session: Session) -> None:
    """fish loses a Ctrl+C that comes while it runs what a key is bound to: wait until it has taken that signal and reads."""
    until = time.monotonic() + _READING_S
    while time.monotonic() < until:
        try:
            taken = not _has_pending_interrupt(session)
            if taken and (await session.inspect()).reading != "no" and not _has_pending_interrupt(session):
                return
        except SessionExited:
            return
        await asyncio.sleep(0.002)


def _has_pending_interrupt(session: Session) -> bool:
    """Whether the kernel has a SIGINT for the shell that it has not taken yet. An inner shell may be on another machine."""
    if session.has_inner_shell:
        return False
    try:
        with open(f"/proc/{session.pid}/status", "rb") as file:
            masks = [int(row.split()[1], 16) for row in file if row.startswith((b"SigPnd:", b"ShdPnd:"))]
    except (OSError, ValueError, IndexError):
        return False
    return any(mask >> (signal.SIGINT - 1) & 1 for mask in masks)


def _is_shell_reading(session: Session, modes: LineModes) -> bool:
    """Whether our shell has the terminal and edits its line by itself."""
    if session.has_inner_shell:
        return not modes.canonical  # it may be on another machine
    try:
        return not modes.canonical and modes.group == os.getpgid(session.pid)
    except OSError:
        return False


async def _is_shell_in_front(session: Session) -> bool:
    """Behind sudo, ssh and the like there is one as a rule; full-screen programs have been ruled out."""
    try:
        seen = await session.inspect()
    except SessionExited:
        return False
    front = seen.foreground
    return seen.relayed or (front is not None and bool(shell_name(front.comm)))


def _reads_line(log: CommandLog) -> bool:
    return log.phase in ("prompt", "prompting")


def _asked(log: CommandLog | None) -> int:
    return 0 if log is None else log.asked


def _kill_character(child: ChildHandle) -> bytes:
    try:
        char = termios.tcgetattr(child.fd)[6][termios.VKILL]
    except (OSError, termios.error):
        return b"\x15"
    return char if isinstance(char, bytes) and char not in (b"", b"\0") else b"\x15"


async def _until(session: Session, true: Callable[[], bool], limit_s: float) -> None:
    """Until `true` says so, at most so long. Looked at whenever the session tells something."""
    changed = asyncio.Event()
    stop = session.listeners.add(lambda _event: changed.set())
    until = time.monotonic() + limit_s
    try:
        while not true() and session.running and not session.closed and time.monotonic() < until:
            changed.clear()
            await _wait(changed, until - time.monotonic())
    finally:
        stop()


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    try:
        async with asyncio.timeout(max(limit_s, 0.0005)):
            await event.wait()
    except TimeoutError:
        pass
