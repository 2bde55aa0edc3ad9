"""What a session waits for, as the kernel knows it: yes, no, or unknown; never a guess at the text on the screen.

The keeper looks at the foreground process group; the terminal's modes say whether typed bytes would be shown. It is looked at
when somebody asks, when output pauses and around input; nothing is polled.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from wsh.process import ProcessInfo, ProcessState
from wsh.session.state_word import StateWord, name_state
from wsh.wire.error import SessionExited, WshError
from wsh.wire.json.object import JsonObject

if TYPE_CHECKING:
    from wsh.session.session import Session

Truth: TypeAlias = Literal["yes", "no", "unknown"]

SHELLS = frozenset("sh bash rbash dash zsh rzsh fish ksh ksh93 mksh ash tcsh csh nu elvish xonsh pwsh".split())
_QUIET_MS = 1000
"""A program that polls counts as waiting once it has printed nothing for so long."""


def shell_name(comm: str) -> str:
    """The shell that a process of that name is, such as bash for `-bash` and zsh for `zsh-5.9`; empty for another program."""
    name = comm.lstrip("-")
    plain = name.rstrip("0123456789.-")
    return name if name in SHELLS else plain if plain in SHELLS else ""


@dataclass(frozen=True)
class SessionState:
    """Each question by itself; `unknown` means that this machine cannot tell."""

    running: bool
    state: StateWord
    """All of it in one word."""
    at_prompt: Truth
    """The shell that wsh started reads a command line."""
    input_wanted: Truth
    """The foreground program is blocked until somebody types."""
    hidden_prompt: Truth
    """What is typed now would not be shown: a password prompt."""
    alt_screen: Truth
    integration: Literal["active", "waiting", "off"]
    """Whether the shell's marks have been seen, are still awaited, or were never asked for."""
    command_id: int | None
    """The command that is running, where the shell tells."""
    foreground: ProcessInfo | None = None
    cwd: str | None = None
    """Of the foreground program."""
    jobs: tuple[ProcessInfo, ...] = ()
    """Other programs of the session that are alive in the background, daemons included."""
    agent_defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables set for an agent's sake; empty for a person's session."""

    def to_wire(self) -> JsonObject:
        """As every door tells it."""
        return {
            "running": self.running,
            "state": self.state,
            "at_prompt": self.at_prompt,
            "input_wanted": self.input_wanted,
            "hidden_prompt": self.hidden_prompt,
            "alt_screen": self.alt_screen,
            "integration": self.integration,
            "command_id": self.command_id,
            "foreground": None if self.foreground is None else describe_process(self.foreground),
            "cwd": self.cwd,
            "jobs": [describe_process(job) for job in self.jobs],
            "agent_defaults": dict(self.agent_defaults),
        }


def describe_process(process: ProcessInfo) -> JsonObject:
    def clean(text: str) -> str:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    return {"pid": process.pid, "argv": [clean(word) for word in process.argv], "name": clean(process.comm)}


async def look(session: Session, *, jobs: bool = True) -> SessionState:
    """Ask the kernel. Of an exited session everything is known."""
    log = session.commands
    integration: Literal["active", "waiting", "off"] = (
        "off" if log is None else "waiting" if log.phase == "starting" and not log.prompts else "active"
    )
    command_id = log.current.id if log is not None and log.current is not None else None
    alt: Truth = "yes" if session.terminal.alt else "no"
    if not session.running:
        return SessionState(False, "exited", "no", "no", "no", alt, integration, command_id)
    seen = await session.inspect(jobs=jobs)
    known = {job.pid for job in seen.jobs}
    orphans = tuple(p for p in session.list_orphans() if p.pid not in known) if jobs else ()
    at_prompt, hidden = _at_prompt(session, seen), _hidden(session, seen)
    return SessionState(
        session.running,
        _name(session, seen, at_prompt, hidden),
        at_prompt,
        seen.reading,
        hidden,
        alt,
        integration,
        command_id,
        seen.foreground,
        seen.cwd,
        (*seen.jobs, *orphans),
        session.agent_defaults,
    )


async def find_word(session: Session) -> StateWord:
    """What the session does, in one word; `running` where nobody can be asked. Cheap for shells at rest, as most sessions are."""
    if session.at_prompt == "yes" and session.child is not None:
        try:
            if os.tcgetpgrp(session.child.fd) == session.pid:
                return "idle"
        except OSError:
            pass  # the keeper can tell more
    try:
        return (await look(session, jobs=False)).state
    except SessionExited:
        return "exited"
    except WshError:
        return "running"


def _name(session: Session, seen: ProcessState, at_prompt: Truth, hidden: Truth) -> StateWord:
    waits = wants_input(session, seen) and (seen.reading == "yes" or session.last_activity_ms >= _QUIET_MS)
    front = seen.foreground
    shell = shell_name(front.comm) if front is not None else ""
    # Typed ahead, a command may run before its shell has told of it; then the kernel knows better.
    in_front = front is None or bool(shell) or front.pid == session.pid
    return name_state(
        front,
        shell,
        at_prompt=at_prompt == "yes" and in_front,
        hidden=hidden == "yes",
        full_screen=session.terminal.alt,
        waits=waits,
        edits=seen.canonical is False and seen.echo is False,
    )


def _at_prompt(session: Session, seen: ProcessState) -> Truth:
    told = session.at_prompt
    if told == "no" and _is_other_shell(session, seen):
        return "unknown"  # a shell inside of the shell may well stand at its own
    return told


def _is_other_shell(session: Session, seen: ProcessState) -> bool:
    front = seen.foreground
    if front is None:
        return False
    log = session.commands
    inside = front.pid != session.pid or (log is not None and log.current is not None and session.running)
    return inside and bool(shell_name(front.comm))


def _hidden(session: Session, seen: ProcessState) -> Truth:
    """Echo off while the kernel still edits lines; or both off while a command sits in a plain read.

    Shells and editors turn both off as well: at a prompt and on the alternate screen it is no hidden prompt, and of a program that
    polls it cannot be known.
    """
    if seen.echo is None or seen.canonical is None:
        return "unknown"
    if seen.echo:
        return "no"
    if seen.canonical:
        return "yes"
    if session.at_prompt == "yes" or session.terminal.alt:
        return "no"
    front = seen.foreground
    if front is not None and front.pid != session.pid and shell_name(front.comm):
        return "unknown"
    if session.commands is None and front is not None and front.pid == session.pid:
        return "unknown"  # the program itself, perhaps a shell without marks at its prompt
    return "yes" if seen.plain_read else "unknown"


def is_hidden_now(session: Session) -> bool:
    """Whether bytes written at this moment go to a password prompt, by the terminal's modes alone. Quick; never waits."""
    child = session.child
    if child is None or child.fd < 0:
        return False
    try:
        local = termios.tcgetattr(child.fd)[3]
    except (OSError, termios.error):
        return False
    return not local & termios.ECHO and bool(local & termios.ICANON)


def wants_input(session: Session, seen: ProcessState) -> bool:
    """Whether a silent program is waiting for somebody: it reads, hides what is typed, or has taken the terminal over."""
    if seen.reading == "yes" or session.terminal.alt:
        return True
    if seen.reading == "no" or seen.relayed:
        return False
    return seen.echo is False or seen.canonical is False
