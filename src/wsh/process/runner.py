"""Headless commands: argv on pipes, bounded output, a deadline, and a tree that never outlives its caller.

No shell, no terminal, no policy: what to run was decided before. `run` waits for the end; `start` gives a handle
whose output can be read while the command runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wsh.process.child_handle import ChildHandle, InputClosed
from wsh.process.keeper_client import KeeperClient, finish_then_cancel
from wsh.process.ring import Ring
from wsh.process.spec import PLAIN_RING_BYTES, ExitStatus, KillReport, SpawnSpec
from wsh.wire.buffer import OutputBuffer
from wsh.wire.error import KeeperGone
from wsh.wire.setting import MIB

StreamName = Literal["stdout", "stderr"]
OnOutput = Callable[[StreamName, bytes], None]

_TURN_BYTES = 64 * 1024


@dataclass(frozen=True)
class RunResult:
    """How a headless command ended and what it printed. `exit` is None if a deadline or a kill ended it in vain."""

    exit: ExitStatus | None
    stdout: bytes
    stderr: bytes
    stdout_dropped: int
    stderr_dropped: int
    duration_ms: float
    timed_out: bool
    survivors: tuple[tuple[int, int], ...] = ()

    @property
    def exit_code(self) -> int | None:
        return self.exit.code if self.exit else None

    @property
    def signal(self) -> str | None:
        return self.exit.signal_name if self.exit else None


class HeadlessRun:
    """A headless command that has been started. Its starter calls `aclose` in the end.

    `aclose` kills the tree if the leader still runs; what a finished command left in the background goes on.
    """

    def __init__(
        self, keeper: KeeperClient, child: ChildHandle, max_output_bytes: int, on_output: OnOutput | None
    ) -> None:
        self._keeper = keeper
        self._on_output = on_output
        self._began = time.monotonic()
        self._ended: float | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._closed = False
        self.child = child
        self.stdout = OutputBuffer(max_output_bytes)
        self.stderr = OutputBuffer(max_output_bytes)
        self.timed_out = False
        self._report: KillReport | None = None
        child.on_output = self._read
        child.exited.add_done_callback(self._exit)
        self._read()

    @property
    def pid(self) -> int:
        return self.child.find_program()

    @property
    def running(self) -> bool:
        return not self._drained.is_set()

    @property
    def duration_ms(self) -> float:
        return ((self._ended or time.monotonic()) - self._began) * 1000

    @property
    def result(self) -> RunResult:
        """What is known so far; final once `running` is False."""
        exited = self.child.exited
        ended = exited.done() and not exited.cancelled() and exited.exception() is None
        return RunResult(
            exited.result() if ended else None,
            self.stdout.read().data,
            self.stderr.read().data,
            self.stdout.start,
            self.stderr.start,
            self.duration_ms,
            self.timed_out,
            self._report.survivors if self._report else (),
        )

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait until the command has ended and its output is read; False if it still runs. Kills nothing."""
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self._drained.wait()
        except TimeoutError:
            return False
        exited = self.child.exited
        if not exited.cancelled() and (problem := exited.exception()) is not None:
            raise problem
        return True

    async def kill(self, grace_ms: int = 2000) -> KillReport:
        """End the whole tree; returns when it is gone and what it printed is read."""
        self._report = await self._keeper.kill_tree(self.child, grace_ms)
        if not self._report.survivors:
            await self.wait()
        return self._report

    def feed(self, data: bytes) -> None:
        """Send `data` to the command's stdin as it reads, then close that."""
        self._feeding = asyncio.ensure_future(self._feed(data))

    async def aclose(self) -> None:
        """Kill what still runs, read the rest, let the keeper forget it. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._feeding is not None:
            self._feeding.cancel()
        try:
            if self.child.running:
                await self.kill()
            if not self.child.running:
                await self._keeper.forget(self.child)
        except KeeperGone:
            pass

    async def _feed(self, data: bytes) -> None:
        try:
            await self.child.write_all(data)
        except InputClosed:
            pass
        self.child.close_input()

    def _exit(self, exited: asyncio.Future[ExitStatus]) -> None:
        self._ended = time.monotonic()
        self._read()

    def _read(self) -> None:
        """Take a turn's share out of both rings; come back if there is more."""
        if self._drained.is_set() and self._closed:
            return
        more = self._take(self.child.ring, "stdout", self.stdout)
        more = self._take(self.child.error_ring, "stderr", self.stderr) or more
        if more:
            asyncio.get_running_loop().call_soon(self._read)
        elif self.child.exited.done():
            self._drained.set()

    def _take(self, ring: Ring, name: StreamName, kept: OutputBuffer) -> bool:
        if ring.closed:
            return False
        data = ring.peek(_TURN_BYTES)
        if data:
            ring.consume(len(data))
            kept.append(data)
            if self._on_output is not None:
                self._on_output(name, data)
        return ring.readable() > 0


async def start(
    keeper: KeeperClient,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    path: str | None = None,
    cwd_fd: int | None = None,
    identity: tuple[int, int] | None = None,
    stdin: bytes | None = None,
    max_output_bytes: int = 10 * MIB,
    on_output: OnOutput | None = None,
    confine: Callable[[SpawnSpec], SpawnSpec] | None = None,
) -> HeadlessRun:
    """Start `argv` without a shell. A caller that keeps what `on_output` gives asks for no bytes here. Raises what `KeeperClient.spawn` raises. The tree also ends if this server dies."""
    spec = SpawnSpec(
        argv, cwd, env, path=path, cwd_fd=cwd_fd, identity=identity, terminal=False, ring_bytes=PLAIN_RING_BYTES,
        dies_with_server=True,
    )  # fmt: skip
    if stdin is not None:
        spec = replace(spec, stdin="pipe")
    child = await keeper.spawn(spec if confine is None else confine(spec))
    started = HeadlessRun(keeper, child, max_output_bytes, on_output)
    if stdin is not None:
        started.feed(stdin)
    return started


async def run(
    keeper: KeeperClient,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    path: str | None = None,
    cwd_fd: int | None = None,
    identity: tuple[int, int] | None = None,
    stdin: bytes | None = None,
    timeout_ms: float | None = None,
    grace_ms: int = 2000,
    max_output_bytes: int = 10 * MIB,
    on_output: OnOutput | None = None,
) -> RunResult:
    """Run `argv` to its end. A deadline or a cancellation kills the whole tree before this returns or raises."""
    started = await start(
        keeper, argv, cwd=cwd, env=env, path=path, cwd_fd=cwd_fd, identity=identity, stdin=stdin,
        max_output_bytes=max_output_bytes, on_output=on_output,
    )  # fmt: skip
    try:
        if not await started.wait(timeout_ms):
            started.timed_out = True
            await started.kill(grace_ms)
        return started.result
    finally:
        await finish_then_cancel(started.aclose())
