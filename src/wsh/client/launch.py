"""Finding this user's server, or starting an ephemeral one.

Many programs may want a server at the same moment: a file lock lets one of them start it while the others wait for its socket. The new
server is detached from us; what it has to say goes to its log.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from wsh.wire.error import ServerGone
from wsh.wire.lock import drop_lock, take_lock
from wsh.wire.place import Places, ensure_private, find_places

START_TIMEOUT_S = 15.0
# These govern the connection of whoever carries them, never a server that others will use too.
_PERSONAL = ("ALLOWED_", "PM_")


async def ensure_server(places: Places | None = None, timeout_s: float = START_TIMEOUT_S) -> Places:
    """Return when this user's server accepts connections, starting one if need be. Raises ServerGone."""
    places = places or find_places()
    if await _answers(places.socket):
        return places
    ensure_private(places.runtime)
    ensure_private(places.state)
    deadline = time.monotonic() + timeout_s
    path = places.runtime / f"{places.server}.start.lock"
    while (lock := take_lock(path, wait=False)) is None:
        if await _answers(places.socket):
            return places
        if time.monotonic() >= deadline:
            raise ServerGone("another program is starting it and does not get on")
        await asyncio.sleep(0.01)
    try:
        if not await _answers(places.socket):
            await _start(places, deadline)
    finally:
        drop_lock(path, lock)
    return places


async def _start(places: Places, deadline: float) -> None:
    process = _spawn(places)
    pause = 0.005
    while not await _answers(places.socket):
        status = process.poll()
        if status is not None:
            raise ServerGone(f"it ended with status {status} while starting; {places.server_log} says why")
        if time.monotonic() >= deadline:
            process.terminate()
            raise ServerGone(f"it did not get ready in time; {places.server_log} says why")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def _spawn(places: Places) -> subprocess.Popen[bytes]:
    log = os.open(places.server_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "wsh.cli.main", "server", "--ephemeral", "--name", places.server],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={key: value for key, value in os.environ.items() if not key.startswith(_PERSONAL)},
            start_new_session=True,
        )
    finally:
        os.close(log)


async def _answers(socket: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(socket))
    except OSError:
        return False
    writer.close()
    return True
