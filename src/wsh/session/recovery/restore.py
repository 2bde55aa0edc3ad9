"""Bringing sessions back: live ones from the keeper, ended ones from disk.

For each session the newest intact snapshot gives a screen at a known offset; the journal gives what was printed since, with the sizes
the terminal had; the ring gives the rest. What cannot be had is counted and said, and never keeps the server from starting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from wsh.process import ChildHandle
from wsh.sandbox.hold import read_holding
from wsh.session.event import Actor
from wsh.session.record.journal import Journal
from wsh.session.record.sidecar import Resize, read_resizes
from wsh.session.record.store import SessionFolder
from wsh.session.recovery.rebuild import RebuildPlan, SessionRebuild
from wsh.session.session import Session
from wsh.session.spec import SessionLaunch
from wsh.terminal import Terminal, TerminalLimits
from wsh.terminal.engine.note import Work
from wsh.wire.error import SnapshotCorrupt
from wsh.wire.json.object import JsonObject
from wsh.wire.name import make_session_name

if TYPE_CHECKING:
    from wsh.session.registry import SessionRegistry

log = logging.getLogger(__name__)


async def restore_all(registry: SessionRegistry) -> list[str]:
    """Adopt every session that can be had; returns what was damaged or lost, in words."""
    said: list[str] = []
    live: set[str] = set()
    for child in sorted(registry.keeper.children.values(), key=lambda c: c.id):
        meta = child.meta
        if not isinstance(meta, dict) or "sid" not in meta:
            await registry.keeper.kill_tree(child, 0)  # a headless child whose caller died with the server
            await registry.keeper.forget(child)
            continue
        live.add(str(meta["sid"]))
        await _restore(registry, meta, child, said)
    folder = registry.places.sessions
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:  # on a full disk there may be none
        if path.name in live or not path.is_dir():
            continue
        described = SessionFolder(path).read_meta()
        if described is None:
            said.append(f"{path.name}: the description cannot be read; the journal is left where it is")
            continue
        if described.get("running"):
            described["running"] = False
            described["cut_off"] = True
            name = described.get("name")
            said.append(f"session {name}: its keeper is gone, so its programs are too; what it printed is kept")
        await _restore(registry, described, None, said)
    for line in said:
        log.warning("restore: %s", line)
    return said


async def _restore(registry: SessionRegistry, meta: JsonObject, child: ChildHandle | None, said: list[str]) -> None:
    from wsh.session.registry import terminal_limits

    try:
        session = await _rebuild(registry, meta, child, terminal_limits(registry.settings), said)
    except Exception:
        log.exception("restoring session %s failed", meta.get("name"))
        said.append(f"session {meta.get('name')}: it could not be restored")
        return
    registry.adopt(session)


async def _rebuild(
    registry: SessionRegistry, meta: JsonObject, child: ChildHandle | None, limits: TerminalLimits, said: list[str]
) -> Session:
    from wsh.session.registry import input_limits, make_log

    folder = SessionFolder(registry.places.sessions / str(meta["sid"]))
    folder.sweep()
    folder.missing = registry.settings.get_bool("journal.enabled") and not folder.path.is_dir()
    described = folder.read_meta() or {}
    meta = _complete(meta, described)
    name = str(meta["name"])
    if registry.find_session(name) is not None:
        name = make_session_name({s.name for s in registry.list_sessions()})
        said.append(f"session {meta['name']}: the name was taken, it is now {name}")
    rows, cols = int(meta["rows"]), int(meta["cols"])
    rebuild = SessionRebuild(registry, folder, meta, child, limits)
    plan = await rebuild.make_plan()
    terminal, offset, facts = await _load_terminal(registry, folder, meta, limits, plan, said)
    kind, who = meta.get("created_by", ["server", "wsh"])
    session = Session(
        sid=str(meta["sid"]),
        name=name,
        launch=SessionLaunch(
            command=str(meta["command"]),
            argv=tuple(meta["argv"]),
            executable="",
            cwd=str(meta["cwd"]),
            env={},
            rows=rows,
            cols=cols,
            tags=tuple(meta.get("tags", ())),
            agent_defaults=dict(meta.get("agent_defaults") or {}),
        ),
        terminal=terminal,
        folder=folder,
        keeper=registry.keeper,
        child=child,
        actor=Actor(kind, who),
        keep=bool(meta.get("keep")),
        created=float(meta["created"]),
        offset=offset,
        limits=input_limits(registry.settings),
        commands=make_log(marks[0], marks[1], registry.settings) if (marks := meta.get("marks")) else None,
        notes=registry.notes,
        holding=read_holding(meta.get("sandbox")),
    )
    session.output.gaps, session.output.set_aside = plan.gaps, plan.set_aside
    session.pid = int(meta.get("pid", 0))
    session.heard = registry.heard.get(session.sid, 0)
    session.memory.recall(facts, meta)
    await _catch_up(session, Journal(folder.path), child)
    if child is None:
        session.end_command()  # the server may have died before it noted this
    if meta.get("cut_off"):
        # The last size was told to a keeper that is gone; the snapshot and the journal have it.
        session.rows, session.cols = session.terminal.rows, session.terminal.cols
    else:
        session.terminal.resize(rows, cols)
    if plan.news:
        session.memory.remember()
    if plan.news or registry.settings.get_bool("journal.enabled") and _is_outdated(described, meta):
        await asyncio.to_thread(_write_down, session)
    borrowed = int(meta.get("borrowed_rows") or 0)
    if borrowed > 0 and session.running:
        # Panels died with the server that drew them, and the program gets their rows back.
        session.resize(min(rows + borrowed, 1000), cols)
    if session.output.lost_bytes:
        said.append(f"session {name}: {session.output.lost_bytes} bytes of its output could not be restored")
    return session


async def _load_terminal(
    registry: SessionRegistry,
    folder: SessionFolder,
    meta: JsonObject,
    limits: TerminalLimits,
    plan: RebuildPlan,
    said: list[str],
) -> tuple[Terminal, int, JsonObject]:
    snapshots, damaged = await asyncio.to_thread(folder.read_snapshots)
    if plan.set_aside:
        facts = snapshots[0].facts if snapshots else {}
        return Terminal(int(meta["rows"]), int(meta["cols"]), limits), plan.gaps.end, facts
    note = registry.notes.note_of(str(meta["sid"]), plan.ring)
    for snapshot in snapshots:
        try:
            with note.during(Work.RESTORE, snapshot.offset):
                return Terminal.restore(snapshot.engine, limits), snapshot.offset, snapshot.facts
        except SnapshotCorrupt:
            damaged += 1
    if damaged:
        name = meta["name"]
        said.append(f"session {name}: {damaged} snapshots were damaged; its screen is rebuilt from the journal")
    first = meta.get("first_size") or [meta["rows"], meta["cols"]]
    return Terminal(int(first[0]), int(first[1]), limits), 0, {}


def _write_down(session: Session) -> None:
    try:
        session.folder.write_meta(session.memory.describe())
    except OSError as problem:
        log.warning("session %s cannot be written to disk: %s", session.name, problem)


def _complete(meta: JsonObject, described: JsonObject) -> JsonObject:
    """The keeper's word on a session, with the folder's where the keeper had not been told yet."""
    whole = {"command": "", "argv": [], "cwd": "/", "rows": 24, "cols": 80, "created": time.time(), "running": True}
    return whole | described | meta


def _is_outdated(described: JsonObject, meta: JsonObject) -> bool:
    """The server died before it wrote the folder's description, or before it wrote what changed."""
    return any(described.get(key) != meta.get(key) for key in ("name", "tags", "rows", "cols"))


async def _catch_up(session: Session, journal: Journal, child: ChildHandle | None) -> None:
    """Parse everything between the snapshot and what the pump will read from the ring."""
    resizes = await asyncio.to_thread(read_resizes, journal.folder, session.generation)
    while True:
        if child is not None and child.ring.seek(session.generation):
            break
        before = session.generation
        until = child.ring.journaled if child is not None else None
        await _read_journal(session, journal, until, resizes)
        if child is None:
            break
        if session.generation == before:  # nobody has these bytes any more
            session.output.skip_lost(child.ring.oldest - session.generation)
    for at, rows, cols in resizes:
        if not session.output.gaps.skips_resize(at):
            session.terminal.resize(rows, cols)


async def _read_journal(session: Session, journal: Journal, until: int | None, resizes: list[Resize]) -> None:
    pieces = journal.read(session.generation, until)
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        if piece.offset > session.generation:
            session.output.skip_lost(piece.offset - session.generation)
        _feed(session, piece.data, resizes)
        await asyncio.sleep(0)


def _feed(session: Session, data: bytes, resizes: list[Resize]) -> None:
    view = memoryview(data)
    while resizes and resizes[0][0] <= session.generation + len(view):
        at, rows, cols = resizes.pop(0)
        cut = max(0, at - session.generation)
        if cut:
            session.output.feed_journal(bytes(view[:cut]))
            view = view[cut:]
        if not session.output.gaps.skips_resize(at):
            session.terminal.resize(rows, cols)
    if view:
        session.output.feed_journal(bytes(view))
