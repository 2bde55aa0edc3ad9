"""Processes that this room starts: builders and scanners, each the leader of its own group, killed as a whole.

`ProgramRunner` is what the room needs from the outside; the composition root may give one that starts children elsewhere.
`LocalRunner` starts them here. Children run with `-P`, so that no module of a workspace is ever imported.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

_LINE_LIMIT = 64 * 1024 * 1024


def python_module(module: str) -> list[str]:
    return [sys.executable, "-P", "-m", module]


class ProgramRunner(Protocol):
    """Runs a program to its end: input in, lines out. Cancelling the call kills its whole process tree."""

    async def run(
        self, argv: list[str], stdin: bytes, on_line: Callable[[bytes], None], *, nice: int = 0
    ) -> tuple[int, bytes]:
        """Exit status (negative for a signal) and what it wrote to stderr, at most 64 KiB of it."""
        ...


class LocalRunner:
    async def run(
        self, argv: list[str], stdin: bytes, on_line: Callable[[bytes], None], *, nice: int = 0
    ) -> tuple[int, bytes]:
        async with spawned(argv, nice=nice) as process:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            errors = asyncio.create_task(_keep(process.stderr))
            try:
                process.stdin.write(stdin)
                try:
                    await process.stdin.drain()
                    process.stdin.close()
                except (BrokenPipeError, ConnectionResetError):
                    pass
                async for line in process.stdout:
                    on_line(line)
                status = await process.wait()
                return status, await errors
            finally:
                errors.cancel()


async def _keep(stream: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while part := await stream.read(65_536):
        kept += part
        del kept[:-65_536]
    return bytes(kept)


@asynccontextmanager
async def spawned(argv: list[str], *, nice: int = 0) -> AsyncIterator[asyncio.subprocess.Process]:
    """A child with pipes. At the end of the block its whole group is dead and reaped, however the block ended."""
    program = ["nice", "-n", str(nice), *argv] if nice else argv
    process = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        cwd="/",
        limit=_LINE_LIMIT,
    )
    try:
        yield process
    finally:
        await asyncio.shield(kill_group(process))


async def kill_group(process: asyncio.subprocess.Process) -> None:
    """Builders and scanners lose nothing when killed at once, so there is no grace."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    await process.wait()
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
