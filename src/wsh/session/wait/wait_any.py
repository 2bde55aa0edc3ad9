"""Waiting for any of several sessions: the first that is quiet, in turn, so that no quiet one starves another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from wsh.session.registry import LifecycleEvent, SessionCreated, SessionRegistry
from wsh.session.session import Session
from wsh.session.wait.wait import WaitResult, WaitSpec
from wsh.wire.error import NoSessions, WaitTimeout


async def wait_for_any(
    registry: SessionRegistry,
    spec: WaitSpec,
    *,
    tags: Sequence[str] | None = None,
    last_session: str | None = None,
) -> tuple[Session, WaitResult]:
    """The first running session whose wait ends, and how it ended.

    Where several are ready at once, the next one after `last_session` in the order of creation is taken.
    `spec.generation` counts for `last_session` alone: without new output that one is not taken again, and the others
    are. Sessions that start meanwhile take part. Raises NoSessions or WaitTimeout.
    """
    waits: dict[asyncio.Task[WaitResult], Session] = {}
    changed = asyncio.Event()
    deadline = asyncio.get_running_loop().time() + spec.max_wait_ms / 1000

    def start(session: Session) -> None:
        own = spec if session.name == last_session else replace(spec, generation=None)
        left_ms = max(0, int((deadline - asyncio.get_running_loop().time()) * 1000)) + 1000
        task = asyncio.ensure_future(session.wait(replace(own, max_wait_ms=left_ms)))
        task.add_done_callback(lambda _: changed.set())
        waits[task] = session

    def on_lifecycle(event: LifecycleEvent) -> None:
        if isinstance(event, SessionCreated) and (tags is None or set(tags) & set(event.session.tags)):
            start(event.session)

    for session in registry.list_sessions(tags):
        if session.running:
            start(session)
    if not waits:
        raise NoSessions
    stop = registry.lifecycle.add(on_lifecycle)
    try:
        while True:
            # One turn of the loop, so that every wait that is over already shows it.
            await asyncio.sleep(0)
            ready = {
                s.sid: t.result() for t, s in waits.items() if t.done() and not t.cancelled() and not t.exception()
            }
            for session in _in_turn(registry.list_sessions(tags), last_session):
                if session.sid in ready:
                    return session, ready[session.sid]
            for task in [t for t in waits if t.done()]:
                task.cancelled() or task.exception()
                del waits[task]
            changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                raise WaitTimeout(
                    f"No session reached the awaited state within {spec.max_wait_ms} ms.", timeout_ms=spec.max_wait_ms
                ) from None
    finally:
        stop()
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def _in_turn(sessions: list[Session], last: str | None) -> list[Session]:
    """All sessions, beginning with the one after `last`."""
    names = [session.name for session in sessions]
    at = names.index(last) + 1 if last in names else 0
    return sessions[at:] + sessions[:at]
