"""How a session is rebuilt after the engine may have killed the server over it.

A note that a dead server left makes its session a suspect. What the server was at is done again in children; what kills
there is left out. Where that is not enough, more is left out, and at last all that the journal has since the newest
snapshot. A session that kills again and again is set aside: its program runs on, its journal is kept, and nothing that
it prints is parsed until the next start.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsh.process import ChildHandle
from wsh.process.ring import Ring
from wsh.session.command.output import LEAVE_ALT, RENDER_LIMITS
from wsh.session.record.journal import Journal
from wsh.session.record.sidecar import read_resizes
from wsh.session.record.store import SessionFolder, Snapshot
from wsh.session.recovery.examine import BUDGET_S, Fed, Findings, SizeChange, Step, examine, look_everywhere, without
from wsh.session.recovery.gap import Gaps
from wsh.session.recovery.note import FoundNote, size_of
from wsh.session.recovery.trial import Fate, attempt_aside
from wsh.terminal import Terminal, TerminalLimits
from wsh.terminal.engine.note import Work
from wsh.wire.json.object import JsonObject
from wsh.wire.system.crash import LOOP_DEATHS, SET_ASIDE

if TYPE_CHECKING:
    from wsh.session.registry import SessionRegistry

log = logging.getLogger(__name__)

_PATIENCE_S = 20.0


@dataclass
class RebuildPlan:
    gaps: Gaps = field(default_factory=Gaps)
    ring: Ring | None = None
    set_aside: bool = False
    news: bool = False
    """Whether something was found that the next server should know."""


class SessionRebuild:
    def __init__(
        self,
        registry: SessionRegistry,
        folder: SessionFolder,
        meta: JsonObject,
        child: ChildHandle | None,
        limits: TerminalLimits,
    ) -> None:
        self._registry = registry
        self._folder = folder
        self._meta = meta
        self._ring = child.ring if child is not None else None
        self._limits = limits
        self._limit_s = registry.settings.get_float("session.engine_timeout_s")
        self._journal = Journal(folder.path)

    async def make_plan(self) -> RebuildPlan:
        sid, name = str(self._meta["sid"]), str(self._meta["name"])
        plan = RebuildPlan(Gaps((int(a), int(b)) for a, b in self._meta.get("left_out") or ()), self._ring)
        found = self._registry.notes.find(sid, self._ring)
        if found is None:
            return plan
        deaths = self._registry.deaths.accuse(sid, name, found.work.name.lower(), found.at)
        if not deaths:
            self._registry.notes.note_of(sid, self._ring).end()
            return plan
        before = plan.gaps.size
        started = time.monotonic()
        if deaths >= LOOP_DEATHS:
            plan.set_aside = plan.news = True
            plan.gaps.add(*self._all())
        else:
            if found.work == Work.RENDER:
                await self._search_rendered(plan, found, certain=deaths > 1)
            else:
                await self._search(plan, found, certain=deaths > 1)
        self._registry.notes.note_of(sid, self._ring).end()
        outcome = _outcome(plan, plan.gaps.size - before)
        self._registry.deaths.conclude(outcome)
        took = time.monotonic() - started
        log.warning("session %s: a server died at %s of it; %s (%.2f s)", name, found.work.name, outcome, took)
        return plan

    async def _search(self, plan: RebuildPlan, found: FoundNote, *, certain: bool) -> None:
        """Find what is to be left out. `certain` says that something must be, whether or not a child dies of it."""
        snapshots, _ = await asyncio.to_thread(self._folder.read_snapshots)
        before = plan.gaps.size
        for snapshot in [*snapshots, None]:
            fate = await self._examine(snapshot, plan.gaps, found)
            findings = fate.answer if fate.lived else None
            if isinstance(findings, Findings) and not findings.opened:
                self._discard(snapshot)
                plan.news = True
                continue
            if isinstance(findings, Findings):
                for start, end in findings.gaps:
                    plan.gaps.add(start, end)
                plan.news = plan.news or bool(findings.gaps)
            if not (isinstance(findings, Findings) and findings.whole):
                await self._leave_out_more(plan, snapshot, found)
            break
        if certain and plan.gaps.size == before:
            start, end = (found.at, found.at + found.size) if found.work == Work.FEED else self._all()
            plan.gaps.add(start, end)
            plan.news = True

    async def _search_rendered(self, plan: RebuildPlan, found: FoundNote, *, certain: bool) -> None:
        """What the session's own terminal survived killed one that was to render it as text."""
        end = found.at + found.size
        rows, cols = int(self._meta["rows"]), int(self._meta["cols"])

        def work() -> Findings:
            steps = [
                Fed(at, data[: end - at])
                for step in without(self._steps(found.at), plan.gaps)
                if isinstance(step, Fed) and step.at < end
                for at, data in [(step.at, step.data)]
            ]
            return examine(lambda: Terminal(rows, cols, RENDER_LIMITS), steps, _look_as_text, BUDGET_S, self._limit_s)

        fate = await attempt_aside(work, _PATIENCE_S, _PATIENCE_S)
        findings = fate.answer if fate.lived else Findings()
        for start, stop in findings.gaps:
            plan.gaps.add(start, stop)
        if not findings.whole or (certain and not findings.gaps):
            plan.gaps.add(found.at, end)
        plan.news = bool(plan.gaps)

    async def _leave_out_more(self, plan: RebuildPlan, snapshot: Snapshot | None, found: FoundNote) -> None:
        """What was found is not enough: everything from the first finding on, or all since the snapshot."""
        plan.news = True
        start = min((a for a, _ in plan.gaps if a >= (snapshot.offset if snapshot else 0)), default=found.at)
        for first in (start, snapshot.offset if snapshot is not None else 0):
            plan.gaps.add(first, self._end())
            fate = await self._examine(snapshot, plan.gaps, found)
            if fate.lived and fate.answer.whole:
                return
        self._discard(snapshot)
        plan.gaps.add(*self._all())

    async def _examine(self, snapshot: Snapshot | None, gaps: Gaps, found: FoundNote) -> Fate:
        rows, cols = int(self._meta["rows"]), int(self._meta["cols"])

        def make() -> Terminal:
            if snapshot is not None:
                return Terminal.restore(snapshot.engine, self._limits)
            first = self._meta.get("first_size") or [rows, cols]
            return Terminal(int(first[0]), int(first[1]), self._limits)

        def look(terminal: Terminal) -> None:
            if found.work == Work.RESIZE and found.size:
                terminal.resize(*size_of(found.size))
            terminal.resize(rows, cols)
            look_everywhere(terminal)

        def work() -> Findings:
            steps = without(self._steps(snapshot.offset if snapshot is not None else 0), gaps)
            return examine(make, steps, look, BUDGET_S, self._limit_s)

        return await attempt_aside(work, _PATIENCE_S, _PATIENCE_S)

    def _steps(self, start: int) -> Iterator[Step]:
        """All that was printed from `start` on, with the changes of size between."""
        sizes = [SizeChange(*resize) for resize in read_resizes(self._folder.path, start)]
        for at, data in self._output(start):
            while sizes and sizes[0].at <= at + len(data):
                size = sizes.pop(0)
                cut = max(0, size.at - at)
                if cut:
                    yield Fed(at, data[:cut])
                    at, data = at + cut, data[cut:]
                yield size
            if data:
                yield Fed(at, data)
        yield from sizes

    def _output(self, start: int) -> Iterator[tuple[int, bytes]]:
        ring = self._ring
        if ring is None:
            for piece in self._journal.read(start):
                yield piece.offset, piece.data
            return
        end = ring.head
        # Below this the keeper may write at any time; from it on it must not.
        stable = max(start, min(ring.tail, ring.journaled), ring.oldest)
        for piece in self._journal.read(start, stable):
            yield piece.offset, piece.data
        if stable < end:
            yield stable, ring.copy(stable, end)

    def _end(self) -> int:
        return self._ring.head if self._ring is not None else self._journal.end

    def _all(self) -> tuple[int, int]:
        return 0, self._end()

    def _discard(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._folder.discard_snapshot(snapshot.offset)


def _outcome(plan: RebuildPlan, size: int) -> str:
    if plan.set_aside:
        return SET_ASIDE
    if size:
        return f"{size} bytes were left out"
    return "its parts were changed" if plan.news else "nothing of it kills in a trial"


def _look_as_text(terminal: Terminal) -> None:
    """What rendering does at its end, besides what everybody does."""
    look_everywhere(terminal)
    terminal.feed(LEAVE_ALT)
    terminal.text_between(terminal.first_line, terminal.total_lines)
    terminal.scrollback(0, 1000, styled=True)
