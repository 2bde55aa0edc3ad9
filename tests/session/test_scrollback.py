from __future__ import annotations

import asyncio

from tests.support.session.running import open_quiet, run_with_registry
from wsh.session.event import Actor
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.wait.wait import WaitSpec
from wsh.wire.system.place import Places

AGENT = Actor("agent", "test")
CAP = 40 * 1024 * 1024
LINES = 9_000


def kept(session: Session) -> list[str]:
    return [str(line) for line in session.terminal.scrollback(limit=20_000).lines if str(line).isdigit()]


def test_over_the_cap_the_least_used_session_loses_its_oldest_lines_and_they_are_counted(places: Places) -> None:
    async def work(registry: SessionRegistry) -> None:
        sessions = []
        for name in ("oldest", "middle", "newest"):
            session = await open_quiet(registry, name=name, cols=200)
            generation = await session.input.send(f"seq {LINES}\r".encode(), AGENT)
            await session.wait(WaitSpec(text=f"{LINES - 1}\n{LINES}\n", generation=generation))
            await session.wait(WaitSpec(quiet_ms=100))
            sessions.append(session)
        oldest, middle, newest = sessions
        each = newest.terminal.memory_bytes
        assert CAP < 3 * each < CAP + each, "the cap is passed, by less than one session"

        def total() -> int:
            return sum(session.terminal.memory_bytes for session in sessions)

        for _ in range(400):
            if total() <= CAP:
                break
            await asyncio.sleep(0.05)
        assert total() <= CAP
        assert kept(newest) == kept(middle) == [str(n) for n in range(1, LINES + 1)], "the others lose nothing"
        left = kept(oldest)
        assert 0 < len(left) < LINES, "no more is dropped than has to be"
        assert left == [str(n) for n in range(LINES - len(left) + 1, LINES + 1)], "and the newest lines stay"
        dropped = oldest.terminal.dropped_lines
        assert LINES - len(left) <= dropped <= LINES - len(left) + 2
        assert newest.terminal.dropped_lines == 0

    run_with_registry(places, work, session__scrollback_total_bytes=CAP)
