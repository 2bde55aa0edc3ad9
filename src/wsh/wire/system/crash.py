"""Servers that native code killed: the trace that Python's own handler leaves of it, and the list of such deaths."""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wsh.wire.system.place import Places

LOOP_DEATHS = 3
LOOP_S = 60.0
"""So many deaths in so many seconds over one session, and it is set aside."""
SET_ASIDE = "it is set aside"


@dataclass(frozen=True)
class Death:
    """`trace` is empty where native code left none; `session` and what follows where nothing was noted."""

    time: float
    trace: str
    session: str = ""
    name: str = ""
    work: str = ""
    at: int = 0
    outcome: str = ""


def read_deaths(path: Path) -> list[Death]:
    """What is remembered, the oldest first."""
    found: list[Death] = []
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            found.append(Death(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def left_trace(places: Places) -> Path:
    """Where the trace of the server before this one lies, if it left one."""
    return places.crash.with_suffix(".crash.found")


@contextmanager
def leave_traces(places: Places) -> Iterator[None]:
    """Meanwhile a death in native code is told to our successor, unless the disk refuses."""
    try:
        if places.crash.exists() and places.crash.stat().st_size:
            places.crash.replace(left_trace(places))
        fd = os.open(places.crash, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    with open(fd, "a") as file:
        faulthandler.enable(file, all_threads=False)
        try:
            yield
        finally:
            faulthandler.disable()
