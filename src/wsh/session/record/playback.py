"""Reading a command's output again: from memory while it is new, from the journal as long as that is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING

from wsh.session.command.command import Command
from wsh.session.command.output import OutputPage, OutputText, read_page, render, rendering
from wsh.session.record.journal import Journal
from wsh.session.wait.pattern import compile_literal, compile_pattern

if TYPE_CHECKING:
    from wsh.session.session import Session

_JOURNAL_PATIENCE_S = 10.0
_WHOLE_BYTES = 64 * 1024 * 1024


async def read_output(session: Session, command: Command, max_bytes: int) -> OutputText:
    """As text, its middle left out where it is longer than `max_bytes`; so far, if the command goes on."""
    capture = session.commands.captured(command) if session.commands is not None else None
    with rendering(session.output, command.start, command.end):
        if capture is not None and (capture.complete or _end_of(session, command) - command.start > _WHOLE_BYTES):
            return await capture.render(command.rows, command.cols, max_bytes)
        data = b"".join([piece async for piece in _pieces(session, command)])
        return await render(data, command.rows, command.cols, max_bytes)


async def read_output_page(
    session: Session,
    command: Command,
    *,
    offset: int = 0,
    limit: int = 1000,
    styled: bool = False,
    search: str | None = None,
    regex: str | None = None,
) -> OutputPage:
    """Lines by number; with `search` (literal) or `regex` only those that match. Raises InvalidPattern."""
    pattern = compile_literal(search) if search else compile_pattern(regex) if regex else None
    got = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal got
        async for piece in _pieces(session, command):
            got += len(piece)
            yield piece

    end = _end_of(session, command)
    with rendering(session.output, command.start, command.end):
        page = await read_page(
            counted(),
            command.rows,
            command.cols,
            offset=max(0, offset),
            limit=max(0, limit),
            styled=styled,
            matches=None if pattern is None else lambda text: pattern.search(text) is not None,
        )
    return replace(page, missing_bytes=max(0, end - command.start - got))


def _end_of(session: Session, command: Command) -> int:
    return session.generation if command.end is None else command.end


async def _pieces(session: Session, command: Command) -> AsyncIterator[bytes]:
    capture = session.commands.captured(command) if session.commands is not None else None
    if capture is not None and capture.complete:
        yield capture.newest
        return
    end = _end_of(session, command)
    stored = (await journal_up_to(session, end)).read(command.start, end)
    while (piece := await asyncio.to_thread(next, stored, None)) is not None:
        yield piece.data


async def journal_up_to(session: Session, end: int) -> Journal:
    """The journal, once the keeper has written it up to `end`: it writes a little later than it reads. Waits no more than it may help."""
    until = time.monotonic() + _JOURNAL_PATIENCE_S
    while session.child is not None and session.journal_state == "ok" and time.monotonic() < until:
        if session.child.ring.journaled >= end:
            break
        await asyncio.sleep(0.005)
    return session.journal
