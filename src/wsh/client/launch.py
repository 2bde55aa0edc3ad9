"""Finding this user's server, or starting one.

Many programs may want a server at the same moment: a file lock lets one of them start it while the others wait for its socket. The new
server is detached from us; what it has to say goes to its log.

Where none runs, an ephemeral one is started. A persistent server that has gone is probably being restarted by its supervisor, so
its clients wait for it a while (`client.restart_wait_s`). If it does not come back they start one as it was started, which stands in for
it: `wsh server` takes over from a stand-in, as from an ephemeral one.

asyncio is imported where it is used: `wsh mcp` begins to start a server before it imports what it needs itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM
from _socket import socket as Socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wsh.wire.error import ServerGone
from wsh.wire.setting import load
from wsh.wire.system.lock import drop_lock, take_lock
from wsh.wire.system.place import Places, ensure_private, find_places, read_boot_id

START_TIMEOUT_S = 15.0
ALREADY_RUNS = 3
"""Exit status of a server that found another one of its name."""
_LOOK_S = 0.005
"""Between two looks at whether a server that starts listens."""
# Per-connection variables; not inherited by a shared server.
_PERSONAL = ("ALLOWED_", "PM_", "WSH_ALIAS_STAGE")


@dataclass(frozen=True)
class ServerRecord:
    """What a server wrote down about itself. It removes that at its end, unless it was killed."""

    persistent: bool
    address: str = ""
    arguments: tuple[str, ...] = ()
    """The words after `wsh server` that start one like it."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Settings that it had from its environment."""


def read_record(places: Places) -> ServerRecord | None:
    """The record of the server that runs, or of one that was killed; None if there is neither."""
    try:
        found = json.loads(places.runtime_info.read_bytes())
        if found.get("boot") != read_boot_id():
            return None  # the record is from before the machine was restarted
        host = str(found.get("host", ""))
        return ServerRecord(
            not found.get("ephemeral", False),
            f"{f'[{host}]' if ':' in host else host}:{found['port']}",
            tuple(map(str, found.get("arguments", ()))),
            {str(key): str(value) for key, value in dict(found.get("environ", {})).items()},
        )
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return None


class BegunServer:
    """A server that this process is starting, and the lock that keeps others from starting one. Wait for it, or nobody else can."""

    def __init__(self, places: Places, left: ServerRecord | None, path: Path, lock: int, deadline: float) -> None:
        self._places = places
        self._path = path
        self._lock = lock
        self._deadline = deadline
        try:
            self._process = _spawn(places, left)
        except BaseException:
            drop_lock(path, lock)
            raise

    async def wait_until_listening(self) -> None:
        """Return when it takes connections, and let go of the lock. Raises ServerGone. To be called once."""
        import asyncio

        try:
            while not _answers(self._places.socket):
                self._check()
                await asyncio.sleep(_LOOK_S)
        finally:
            drop_lock(self._path, self._lock)

    def _check(self) -> None:
        log = self._places.server_log
        status, late = self._process.poll(), time.monotonic() >= self._deadline
        if status == ALREADY_RUNS:  # another was quicker: its socket comes
            if late:
                raise ServerGone(f"another one runs and does not answer; {log} says why")
        elif status is not None:
            raise ServerGone(f"it ended with status {status} while starting; {log} says why")
        elif late:
            self._process.terminate()
            raise ServerGone(f"it did not get ready in time; {log} says why")


def begin_server(places: Places) -> BegunServer | None:
    """Begin to start an ephemeral server if there is none and never was; None leaves everything to `ensure_server`."""
    try:
        if _answers(places.socket) or places.runtime_info.exists() or is_inside(places):
            return None
        ensure_private(places.runtime)
        ensure_private(places.state)
        path = _start_lock(places)
        lock = take_lock(path, wait=False)
        if lock is None:
            return None
        if _answers(places.socket):
            drop_lock(path, lock)
            return None
        return BegunServer(places, None, path, lock, time.monotonic() + START_TIMEOUT_S)
    except OSError:
        return None


async def ensure_server(
    places: Places | None = None, timeout_s: float = START_TIMEOUT_S, *, last: ServerRecord | None = None
) -> Places:
    """Return when this user's server accepts connections, starting one if need be. Raises ServerGone.

    `last` is the server that the caller was connected to before.
    """
    import asyncio

    places = places or find_places()
    if _answers(places.socket):
        return places
    left = read_record(places)
    if is_inside(places):
        # The caller was connected before: then somebody outside may start the next one, as a viewer does.
        if last is not None and await _comes_back(places, timeout_s):
            return places
        raise ServerGone(
            "none runs, and one that is started inside of a session would end with that",
            "Start it from a terminal outside of wsh, with `wsh server` or `wsh attach`. The sessions go on meanwhile.",
        )
    if any(record is not None and record.persistent for record in (left, last)) and await _comes_back(places):
        return places
    ensure_private(places.runtime)
    ensure_private(places.state)
    deadline = time.monotonic() + timeout_s
    path = _start_lock(places)
    while (lock := take_lock(path, wait=False)) is None:
        if _answers(places.socket):
            return places
        if time.monotonic() >= deadline:
            raise ServerGone("another program is starting it and does not get on")
        await asyncio.sleep(_LOOK_S)
    if _answers(places.socket):
        drop_lock(path, lock)
    else:
        await BegunServer(places, left, path, lock, deadline).wait_until_listening()
    return places


def _start_lock(places: Places) -> Path:
    return places.runtime / f"{places.server}.start.lock"


def is_inside(places: Places) -> bool:
    """Whether this process descends from the keeper of that place, and so ends with one of its sessions."""
    keeper, pid = os.fsencode(places.keeper_socket), os.getpid()
    try:
        while pid > 1:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                pid = int(stat.read().rpartition(b")")[2].split()[1])
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                if keeper in line.read().split(b"\0"):
                    return True
    except (OSError, ValueError, IndexError):
        pass
    return False


async def _comes_back(places: Places, wait_s: float | None = None) -> bool:
    """Whether somebody starts the server again, within that time, or else within what the setting gives a persistent one."""
    import asyncio

    if wait_s is None:
        wait_s = load(places.config_file).get_float("client.restart_wait_s")
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        if _answers(places.socket):
            return True
    return False


def _spawn(places: Places, left: ServerRecord | None) -> subprocess.Popen[bytes]:
    """One that was killed is replaced by one like it. One that ended by itself was meant to end: an ephemeral one follows."""
    how = ["--ephemeral"]
    environ = {key: value for key, value in os.environ.items() if not key.startswith(_PERSONAL)}
    if left is not None and left.persistent:
        how = ["--stand-in", "--bind", left.address, *left.arguments]
        environ |= left.environ
    log = os.open(places.server_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "wsh.cli.main", "server", *how, "--name", places.server],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environ,
            start_new_session=True,
        )
    finally:
        os.close(log)


def _answers(socket: Path) -> bool:
    """Whether a server takes connections there. It does not block: what is connected waits in the server's backlog."""
    connection = Socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(os.fspath(socket))
    except BlockingIOError:
        return True  # its backlog is full, so it is there
    except OSError:
        return False
    finally:
        connection.close()
    return True
