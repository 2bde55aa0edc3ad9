"""A keeper that is stopped at the end of a block, and short words for tests of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.waiting import until
from wsh.process import ChildHandle, JournalSpec, KeeperClient, KeeperOptions, SpawnSpec
from wsh.process.keeper.tree.mark import is_alive
from wsh.wire.system.place import Places

OPTIONS = KeeperOptions(linger_s=1.0)


@contextlib.asynccontextmanager
async def opened(places: Places) -> AsyncIterator[KeeperClient]:
    """A keeper that is stopped, with everything in it, when the block ends."""
    keeper = await KeeperClient.open(places, OPTIONS)
    pid = keeper.pid
    try:
        yield keeper
    finally:
        await keeper.aclose()
        last = await KeeperClient.open(places, OPTIONS)
        assert last.pid == pid, "the keeper died under the test"
        assert await last.stop(grace_ms=0) == []
        await until(lambda: not is_alive(pid))


def shell(script: str, **more: Any) -> SpawnSpec:
    """A terminal that runs a script with sh."""
    return SpawnSpec(["sh", "-c", script], "/", {"PATH": os.environ["PATH"]}, **more)


def journal_in(folder: Path, **more: Any) -> JournalSpec:
    folder.mkdir(exist_ok=True)
    return JournalSpec(str(folder), **more)


def read_journal(folder: Path) -> dict[int, bytes]:
    """Segments by their start offset."""
    return {int(path.name.split(".")[1]): path.read_bytes() for path in sorted(folder.glob("journal.*.raw"))}


async def said(child: ChildHandle, text: bytes) -> None:
    await until(lambda: text in child.ring.peek())
