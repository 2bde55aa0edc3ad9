"""Typing one line for the program that reads a session's terminal: a shell at its prompt, or the program in front. Never onto what somebody has typed.

A run may type to any program in front, because its caller looks at what comes of it. Nobody looks here, so more is asked: the program
must be the one that was meant, it must not hide what is typed, and nothing typed since the last Enter may stand there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from wsh.session.command.line import LineModes
from wsh.session.command.turn import LineMoved, LineTurn, count_unread, read_modes
from wsh.session.event import Actor
from wsh.wire.error import LineInUse, SessionExited

if TYPE_CHECKING:
    from wsh.session.session import Session

IN_USE = "something stands on the line that no Enter has completed"
_STARTUP_S = 2.0
_TYPING_S = 2.0
_READ_LOOKS = 200
_BEFORE_ENTER_S = 0.15
"""Full-screen programs take an Enter that comes with the text for a line break in something pasted."""


def find_front(session: Session) -> int:
    """The process group in front. Raises SessionExited."""
    modes = read_modes(session.child) if session.running else None
    if modes is None:
        raise SessionExited(session.name, session.exit_code)
    return modes.group


async def type_line(
    session: Session, text: str, actor: Actor, meant: int, commit: Callable[[], Awaitable[None]]
) -> str | None:
    """Type `text` and Enter if the reader is the process group `meant`, or the session's own program once that group has ended.

    None: typed. Else why it cannot be typed now; then nothing was. `commit` is awaited right before the first byte is written, when
    nothing can refuse any more, and may raise to keep it from being written. Raises SessionExited; LineInUse where the text was typed
    and Enter was not, because somebody else typed meanwhile.
    """
    if session.input.taken_by is not None:
        return "a person has taken the session over"
    if session.lock.locked():
        return "a run is under way"
    modes = read_modes(session.child)
    if modes is None:
        raise SessionExited(session.name, session.exit_code)
    if not _is_meant(session, modes, meant):
        return "another program is in front"
    own = session.has_inner_shell or modes.group == _own_group(session)
    log = session.commands
    async with session.lock:
        if log is not None and own and not (log.phase == "starting" and _is_silent(session)):
            if session.at_prompt != "yes":
                return "the shell is not at its prompt"
            if session.input.line.pending and time.time() - max(session.input.line.authors.values()) < _TYPING_S:
                return IN_USE  # asking the shell would only disturb
            turn = LineTurn(session, actor, text, time.monotonic(), 0.0)
            return await _send(session, text.encode() + b"\r", actor, lambda: _check_shell(session, turn, commit))
        if (await session.inspect()).reading == "no":
            return "the program in front does not read"
        data = text.encode() + (b"\r" if modes.canonical else b"")
        refused = await _send(session, data, actor, lambda: _check_program(session, modes, meant, commit))
        if refused is None and not modes.canonical:
            await _press_enter(session, actor, modes)
        return refused


async def _send(session: Session, data: bytes, actor: Actor, before: Callable[[], Awaitable[bytes]]) -> str | None:
    try:
        await session.input.send(data, actor, before=before)
    except LineInUse:
        return IN_USE
    except LineMoved:
        return "another program came in front"
    return None


async def _check_shell(session: Session, turn: LineTurn, commit: Callable[[], Awaitable[None]]) -> bytes:
    prefix = await turn.check()
    if session.at_prompt != "yes":
        raise LineMoved
    await commit()
    return prefix


async def _check_program(session: Session, seen: LineModes, meant: int, commit: Callable[[], Awaitable[None]]) -> bytes:
    modes = read_modes(session.child)
    if modes is None or modes != seen or not _is_meant(session, modes, meant):
        raise LineMoved
    line = session.input.full_screen_line if session.terminal.alt and not modes.canonical else session.input.line
    if (modes.canonical and not modes.echo) or line.stands(modes, lambda: count_unread(session)):
        raise LineInUse(session.name, own=False, **line.describe().to_wire())
    await commit()
    return b""


async def _press_enter(session: Session, actor: Actor, modes: LineModes) -> None:
    """When the program has read the text, and only if the line is still ours."""
    for _ in range(_READ_LOOKS):
        if not count_unread(session):
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(_BEFORE_ENTER_S)

    async def still_ours() -> bytes:
        for line in (session.input.line, session.input.full_screen_line):
            if any(author != actor for author in line.authors) and line.stands(modes):
                raise LineInUse(session.name, own=False, **line.describe().to_wire())
        return b""

    await session.input.send(b"\r", actor, before=still_ours)


def _is_meant(session: Session, modes: LineModes, meant: int) -> bool:
    return modes.group == meant or (_is_gone(meant) and modes.group == _own_group(session))


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _own_group(session: Session) -> int | None:
    """Of the program that the session was opened for."""
    try:
        return os.getpgid(session.pid)
    except OSError:
        return None


def _is_silent(session: Session) -> bool:
    return time.monotonic() - session.last_activity > _STARTUP_S
