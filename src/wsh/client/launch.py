"""Finding this user's server, or starting one.

Many programs may want a server at the same moment: a file lock lets one of them start it while the others wait for its socket. The new
server is detached from us; what it has to say goes to its log.

Where none runs, an ephemeral one is started. A persistent server that has gone is probably being restarted by its supervisor, so
its clients wait for it a while (`client.restart_wait_s`). If it does not come back they start one as it was started, which stands in for
it: `wsh server` takes over from a stand-in, as from an ephemeral one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
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


async def ensure_server(
    places: Places | None = None, timeout_s: float = START_TIMEOUT_S, *, last: ServerRecord | None = None
) -> Places:
    """Return when this user's server accepts connections, starting one if need be. Raises ServerGone.

    `last` is the server that the caller was connected to before.
    """
    places = places or find_places()
    if await _answers(places.socket):
        return places
    left = read_record(places)
    if any(record is not None and record.persistent for record in (left, last)) and await _comes_back(places):
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
            await _start(places, deadline, left)
    finally:
        drop_lock(path, lock)
    return places


async def _comes_back(places: Places) -> bool:
    """Whether somebody starts the persistent server again, within the time that the setting gives."""
    wait_s = load(places.config_file).get_float("client.restart_wait_s")
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        if await _answers(places.socket):
            return True
    return False


async def _start(places: Places, deadline: float, left: ServerRecord | None) -> None:
    process = _spawn(places, left)
    pause = 0.005
    while not await _answers(places.socket):
        status = process.poll()
        if status == ALREADY_RUNS:  # another was quicker: its socket comes
            if time.monotonic() >= deadline:
                raise ServerGone(f"another one runs and does not answer; {places.server_log} says why")
        elif status is not None:
            raise ServerGone(f"it ended with status {status} while starting; {places.server_log} says why")
        elif time.monotonic() >= deadline:
            process.terminate()
            raise ServerGone(f"it did not get ready in time; {places.server_log} says why")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.05)


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


async def _answers(socket: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(str(socket))
    except OSError:
        return False
    writer.close()
    return True
