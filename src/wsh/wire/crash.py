"""The trace that a server leaves when native code kills it: Python's own handler writes it, without allocating."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsh.wire.place import Places


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
