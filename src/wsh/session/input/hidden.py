"""A hidden prompt as something that can be told from the next one, and consent to type there.

Knows nothing of who asks whom: a gate that finds no consent refuses, and a caller with a person's yes types under `consent_to`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsh.session.state import is_hidden_now
from wsh.wire.caller import Actor

if TYPE_CHECKING:
    from wsh.session.session import Session

_NO_ANSWER = b"\x03\x04\x1a\x1c"
"""Ctrl+C, Ctrl+D, Ctrl+Z and Ctrl+\\ leave a prompt; they answer nothing."""
_LONGEST_LINE = 400


@dataclass(frozen=True)
class HiddenPrompt:
    """One prompt: the same program in front, the same last line, and nobody has typed since."""

    group: int
    line: str
    typed: tuple[Actor, float] | None


_consent: ContextVar[HiddenPrompt | None] = ContextVar("consent", default=None)


@contextmanager
def consent_to(prompt: HiddenPrompt) -> Iterator[None]:
    """What is typed inside goes to this prompt or nowhere."""
    token = _consent.set(prompt)
    try:
        yield
    finally:
        _consent.reset(token)


def get_consent() -> HiddenPrompt | None:
    return _consent.get()


def find_hidden_prompt(session: Session) -> HiddenPrompt | None:
    """The prompt that stands there now; None if what is typed would be shown. Quick; never waits."""
    child = session.child
    if child is None or not is_hidden_now(session):
        return None
    try:
        group = os.tcgetpgrp(child.fd)
    except OSError:
        return None
    return HiddenPrompt(group, last_line(session), session.input.last)


def answers(data: bytes) -> bool:
    """Whether these bytes would answer a prompt, rather than leave it."""
    return bool(data.strip(_NO_ANSWER))


def last_line(session: Session) -> str:
    """The line with the cursor, or the last one above it that holds something."""
    screen = session.terminal.screen(styled=False)
    for line in reversed(screen.lines[: screen.cursor.row + 1]):
        if isinstance(line, str) and line.strip():
            return line.strip()[:_LONGEST_LINE]
    return ""
