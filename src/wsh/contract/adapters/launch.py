"""Start one desktop program and wait until it can be spoken to, or end it again.

The program leads a session of its own and is left running once it is ready: the window belongs to the person, not to
us. Only what was started here is ever ended here.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from wsh.bridge.client import BridgeClient
from wsh.bridge.endpoint import Endpoint, find_endpoint
from wsh.bridge.fault import BridgeFault, HandshakeRefused, HandshakeTimeout

Failure: TypeAlias = Literal["spawn_failed", "exited", "timeout", "refused"]
Connect: TypeAlias = Callable[[Endpoint, float], Awaitable[BridgeClient]]
GRACE_S = 2.0
TEMPORARY_FAILURE = 75
"""Exit status by which a program says that trying again may help (EX_TEMPFAIL)."""
UNKNOWN_STATUS = 255
_TRANSIENT_WORDS = ("eaddrinuse", "address already in use")


class LaunchFailed(Exception):
    def __init__(
        self, failure: Failure, message: str, *, transient: bool = False, exit_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.transient = transient
        self.exit_code = exit_code


@dataclass
class Process:
    """A program that we started. `pidfd` becomes readable when it ends; until reaped, its pid is nobody else's."""

    pid: int
    pidfd: int
    log: Path
    exit_code: int | None = None

    def poll(self) -> int | None:
        """Exit status of the process, None while it runs; negative for a signal. Does not reap: the pid stays ours until `close`."""
        if self.exit_code is None and self.pidfd >= 0:
            try:
                info = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # it ended, and something else in this process took its status
                self.exit_code = UNKNOWN_STATUS
                return self.exit_code
            if info is not None:
                self.exit_code = info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
        return self.exit_code

    def said(self) -> str:
        """The end of what it wrote before it failed."""
        try:
            return self.log.read_bytes()[-600:].decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def reap_later(self) -> None:
        """Let it run; collect it when it ends, as long as this server lives."""
        loop = asyncio.get_running_loop()

        def reap() -> None:
            loop.remove_reader(self.pidfd)
            self.poll()
            self.close()

        loop.add_reader(self.pidfd, reap)

    def let_go(self) -> None:
        """Stop watching; the program goes on."""
        if self.pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self.pidfd)
            self.close()

    def close(self) -> None:
        """Reap it if it has ended, and give up the descriptor."""
        if self.pidfd >= 0:
            if self.poll() is not None:
                with suppress(ChildProcessError):
                    os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG)
            os.close(self.pidfd)
            self.pidfd = -1

    async def end(self) -> None:
        """End it and its process group: politely, then not."""
        self._signal(signal.SIGTERM)
        await self._wait(GRACE_S)
        self._signal(signal.SIGKILL)
        await self._wait(GRACE_S)
        self.close()

    def _signal(self, number: signal.Signals) -> None:
        # the leader is not reaped yet, alive or not, so that this group id cannot be anybody else's
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    async def _wait(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def notice() -> None:
            loop.remove_reader(self.pidfd)
            ended.set_result(None)

        loop.add_reader(self.pidfd, notice)
        try:
            await asyncio.wait({ended}, timeout=timeout_s)
        finally:
            loop.remove_reader(self.pidfd)


def spawn(path: str, environ: Mapping[str, str], log: Path) -> Process:
    """Start `path`. Raises LaunchFailed when it cannot be executed."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        pid = os.posix_spawn(path, [path], dict(environ), file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE])
    except OSError as problem:
        name = errno.errorcode.get(problem.errno or 0, "error")
        raise LaunchFailed("spawn_failed", f"cannot be started ({name}: {problem.strerror})") from None
    return Process(pid, os.pidfd_open(pid), log)


async def launch(
    path: str, environ: Mapping[str, str], info: Path, log: Path, timeout_s: float, connect: Connect
) -> tuple[Process, BridgeClient]:
    """Start `path` and connect to it within `timeout_s`. On failure whatever was started is ended."""
    before = find_endpoint(info)
    deadline = time.monotonic() + timeout_s
    process = spawn(path, environ, log)
    try:
        while True:
            ended = process.poll() is not None
            endpoint = find_endpoint(info)
            if endpoint is not None and (endpoint != before or endpoint.pid == process.pid):
                client = await _try(connect, endpoint, deadline - time.monotonic())
                if client is not None:
                    return process, client
            if ended:
                raise _exited(process)
            if time.monotonic() >= deadline:
                raise LaunchFailed("timeout", f"was not ready within {timeout_s:g} s")
            await asyncio.sleep(0.02)
    except BaseException:
        await _end(process)
        raise


async def _try(connect: Connect, endpoint: Endpoint, left_s: float) -> BridgeClient | None:
    """A client, or None when it is not listening yet."""
    try:
        return await connect(endpoint, max(0.05, left_s))
    except HandshakeTimeout:
        raise LaunchFailed("timeout", "accepted the connection and then said nothing") from None
    except HandshakeRefused as refused:
        raise LaunchFailed("refused", refused.message) from None
    except BridgeFault:
        return None


def _exited(process: Process) -> LaunchFailed:
    said = process.said()
    code = process.exit_code
    transient = code == TEMPORARY_FAILURE or any(word in said.lower() for word in _TRANSIENT_WORDS)
    message = f"ended with status {code} before it was ready" + (f": {said}" if said else "")
    return LaunchFailed("exited", message, transient=transient, exit_code=code)


async def _end(process: Process) -> None:
    ending = asyncio.ensure_future(process.end())
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            continue
