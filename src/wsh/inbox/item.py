"""One entry of the inbox, and those that sessions give rise to."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wsh.session.command.command import Command
from wsh.session.input.hidden import last_line
from wsh.session.session import Session
from wsh.session.state_word import StateWord
from wsh.wire.setting import Settings

ItemKind: TypeAlias = Literal["request", "hidden", "asks", "failed", "finished"]
ORDER: tuple[ItemKind, ...] = ("request", "hidden", "asks", "failed", "finished")
WANTING: frozenset[ItemKind] = frozenset({"request", "hidden", "asks"})
"""Kinds that wait for a person."""
_INTERRUPTED = frozenset({130, 141, 148})
"""Ended by Ctrl+C, by a reader that closed its pipe, or stopped by Ctrl+Z: a person's doing, no failure."""
_LEAVING = re.compile(r"(?:\A|[;&|({\n])\s*(?:exit|logout|bye)\b")
"""A line that leaves its shell."""


@dataclass(frozen=True)
class InboxItem:
    """`since` is when it began to wait, or ended, in seconds since the epoch."""

    id: str
    kind: ItemKind
    since: float
    what: str
    """The command, in words that can be shown."""
    line: str = ""
    """The last line of a program that asks."""
    session: str | None = None
    command_id: int | None = None
    request_id: str | None = None
    exit_code: int | None = None
    duration_ms: float | None = None

    @property
    def wants(self) -> bool:
        """Whether it waits for a person."""
        return self.kind in WANTING


@dataclass(frozen=True)
class InboxLimits:
    min_command_s: float
    keep_s: float
    per_session: int

    @classmethod
    def of(cls, settings: Settings) -> InboxLimits:
        return cls(
            settings.get_float("inbox.min_command_s"),
            settings.get_int("inbox.keep_s"),
            settings.get_int("inbox.per_session"),
        )


def list_items(
    session: Session, state: StateWord, limits: InboxLimits, now: float, put_off: Collection[str] = ()
) -> Iterator[InboxItem]:
    """What a session in this state puts into the inbox, newest command first. No limit takes away what is `put_off`, by id."""
    if state in ("asks", "hidden"):
        log = session.commands
        running = log.current if log is not None else None
        yield InboxItem(
            f"{state}.{session.sid}.{session.generation}",
            "hidden" if state == "hidden" else "asks",
            now - _silent_s(session),
            running.command if running is not None else session.command,
            last_line(session),
            session.name,
            running.id if running is not None else None,
        )
    ended = session.ended
    failed = session.exit_code != 0
    kept = ended is not None and (now - ended <= limits.keep_s or f"exit.{session.sid}" in put_off)
    if ended is not None and kept and not was_left(session):
        yield InboxItem(
            f"exit.{session.sid}",
            "failed" if failed else "finished",
            ended,
            session.command,
            session=session.name,
            exit_code=session.exit_code,
        )
    count, full = 0, False
    left = {id for id in put_off if id.startswith(f"command.{session.sid}.")}
    commands = session.history.list_commands()
    if ended is not None and commands and _is_its_end(commands[-1], session):
        commands.pop()
    for command in reversed(commands):
        full = full or count == limits.per_session
        if full and not left:
            return
        kind = _judge(command, limits)
        if kind is not None:
            id, since = f"command.{session.sid}.{command.id}", _ended(command, session, now)
            full = full or now - since > limits.keep_s
            if full and id not in left:
                continue
            left.discard(id)
            count += 1
            yield InboxItem(
                id,
                kind,
                since,
                command.command,
                session=session.name,
                command_id=command.id,
                exit_code=command.exit_code,
                duration_ms=command.duration_ms,
            )


def was_left(session: Session) -> bool:
    """Whether a shell ended by itself, with whatever status: not by a signal, and not before its first prompt."""
    log = session.commands
    if log is None or session.exit_code is None or session.exit_signal is not None:
        return False
    return log.prompts > 0 or session.exit_code == 0


def _is_its_end(last: Command, session: Session) -> bool:
    """Whether the last command of a shell was leaving it, or ended by the signal that ended the shell."""
    if session.exit_signal is not None and last.exit_code == session.exit_code:
        return True
    return _LEAVING.search(last.command) is not None


def _judge(command: Command, limits: InboxLimits) -> Literal["failed", "finished"] | None:
    """None for a command that nobody needs to hear of."""
    if command.state != "finished" or command.exit_code in _INTERRUPTED or command.exit_code is None:
        return None
    if command.exit_code != 0:
        return "failed"
    return "finished" if (command.duration_ms or 0) >= limits.min_command_s * 1000 else None


def _ended(command: Command, session: Session, now: float) -> float:
    if command.started is None:
        return now - session.last_activity_ms / 1000
    return min(now, command.started + (command.duration_ms or 0) / 1000)


def _silent_s(session: Session) -> float:
    """How long neither the program nor anybody else has said anything."""
    typed = session.input.last[1] if session.input.last is not None else 0.0
    return max(0.0, time.monotonic() - max(session.last_activity, typed))
