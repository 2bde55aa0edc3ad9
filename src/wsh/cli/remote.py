"""Talking to the server from a command: connect, run one coroutine, show that it takes a while."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from wsh.client.client import Server

Result = TypeVar("Result")

_PATIENCE_S = 1.0


def ask(work: Callable[[Server], Awaitable[Result]], *, start: bool = True, doing: str = "waiting") -> Result:
    """Run `work` with this user's server; with `start`, an ephemeral one is started when none runs.

    What takes more than a second says so on a terminal's stderr. Ctrl+C ends the wait, not the session.
    """
    from wsh.client.client import connect

    async def main() -> Result:
        async with connect(start=start) as server:
            task = asyncio.ensure_future(work(server))
            note = asyncio.ensure_future(_tell(doing)) if sys.stderr.isatty() else None
            try:
                return await task
            finally:
                if note is not None:
                    note.cancel()
                    await asyncio.gather(note, return_exceptions=True)

    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(130)


async def _tell(doing: str) -> None:
    await asyncio.sleep(_PATIENCE_S)
    passed = 1
    try:
        while True:
            sys.stderr.write(f"\r\x1b[2K{doing}… {passed} s")
            sys.stderr.flush()
            await asyncio.sleep(1)
            passed += 1
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
