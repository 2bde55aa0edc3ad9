"""A real registry with a real keeper for one test, and nothing left of either afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import uvloop

from tests.support.process.quick_keeper import quick_keepers
from wsh.session.registry import SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.session.wait.wait import WaitSpec
from wsh.wire.setting import Settings, load
from wsh.wire.system.place import Places

Result = TypeVar("Result")


def run_with_registry(
    places: Places, work: Callable[[SessionRegistry], Awaitable[Result]], **settings: object
) -> Result:
    """Open a registry, do `work`, stop everything. Settings are given as `session__rows=30`."""
    flags = {key.replace("__", "."): value for key, value in settings.items()}

    async def main() -> Result:
        registry = await SessionRegistry.open(places, load(None, {}, flags))
        try:
            return await work(registry)
        finally:
            await registry.stop()

    with quick_keepers(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def run(coroutine: Awaitable[Result]) -> Result:
    async def main() -> Result:
        return await coroutine

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def settings_of(**settings: object) -> Settings:
    return load(None, {}, {key.replace("__", "."): value for key, value in settings.items()})


async def open_quiet(registry: SessionRegistry, command: str = "sh", **spec: object) -> Session:
    """A session that has printed its first prompt."""
    session = await registry.open_session(SessionSpec(command=command, env={"PS1": "$ "}, **spec))  # type: ignore[arg-type]
    await session.wait(WaitSpec(text="$", generation=0, max_wait_ms=60_000))
    return session


def plain(session: Session) -> list[str]:
    return [str(line) for line in session.terminal.screen(styled=False).lines]


def whole_text(session: Session) -> str:
    return "\n".join(str(line) for line in session.terminal.scrollback(limit=1_000_000, styled=False).lines)
