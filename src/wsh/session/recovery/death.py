"""Deaths of servers before this one: how they are seen, counted and remembered.

A server that native code kills leaves a trace in a file (Python's own handler writes it, without allocating); one that
was told to end, or was killed from outside, leaves that file empty. Each death is a line in a second file, which
`wsh doctor` reads, and by which a session that kills again and again is recognised.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace

from wsh.session.recovery.watchdog import EXIT_STATUS
from wsh.wire.system.crash import LOOP_S, Death, left_trace, read_deaths
from wsh.wire.system.place import Places, write_private

_KEPT = 100


class Deaths:
    def __init__(self, places: Places) -> None:
        self._places = places
        self.last = _take_trace(places)
        """The trace that the server before this one left, if native code killed it."""
        self._known = read_deaths(places.deaths)
        self._headline = self.last.splitlines()[0][:200] if self.last else ""
        if self.last:
            self._remember(Death(time.time(), self._headline))

    def accuse(self, session: str, name: str, work: str, at: int) -> int:
        """The server before us ended during `work` of that session, at offset `at`. How often it is to blame, so far.

        0 if nothing says that it is: a server that was killed from outside was at something too, most of the time. If the
        one before that had ended at the very same place, it may have been no accident (the system ran out of memory, say): 1,
        and never more, since several kills may well find a server at the same work. Then only what kills in a trial counts.
        """
        now = time.time()
        if self._known and self._known[-1].trace and not self._known[-1].session:
            self._known.pop()  # ours, which nobody was accused of yet
        again = any(not death.trace and (death.session, death.at) == (session, at) for death in self._known)
        self._remember(Death(now, self._headline, session, name, work, at))
        if not self.last:
            return int(again)
        return sum(
            death.session == session and abs(now - death.time) < LOOP_S and bool(death.trace or death.at == at)
            for death in self._known
        )

    def conclude(self, outcome: str) -> None:
        """What became of the session that was accused."""
        self._remember(replace(self._known.pop(), outcome=outcome))

    def _remember(self, death: Death) -> None:
        self._known = [*self._known, death][-_KEPT:]
        text = "".join(json.dumps(asdict(known)) + "\n" for known in self._known)
        try:
            write_private(self._places.deaths, text.encode())
        except OSError:
            pass  # a full disk: counted in memory all the same


def _take_trace(places: Places) -> str:
    found = left_trace(places)
    try:
        text = found.read_text("utf-8", "replace").strip()
        found.replace(places.crash.with_suffix(".crash.last"))
    except OSError:
        return ""
    return text


def tell_stuck(places: Places) -> None:
    """Leave the trace of an engine that did not come back, and end."""
    try:
        with places.crash.open("a") as file:
            file.write("The terminal engine did not come back.\n")
    finally:
        os._exit(EXIT_STATUS)
