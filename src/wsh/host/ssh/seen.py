"""When each ssh host was last seen, and its sessions then, for the next server: it may begin while a host is away."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.host.registry import HostRegistry
from wsh.wire.system.private_file import read_regular, write_private
from wsh.wire.system.task_set import TaskSet

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.host")

_PAUSE_S = 60.0
"""What changes meanwhile is written together; a server that is killed loses no more than that."""


@dataclass(frozen=True)
class SeenHost:
    target: str
    last_seen: float
    version: str | None = None
    sessions: list[JsonObject] = field(default_factory=list)
    """SessionInfo, with the addresses that the sessions have here."""


class SeenHosts:
    """`hosts-seen.json` beside the list of hosts. It may be lost or damaged: then hosts count as not seen yet."""

    def __init__(self, path: Path, registry: HostRegistry) -> None:
        self._path = path
        self._registry = registry
        self._tasks = TaskSet()
        self._timer: asyncio.TimerHandle | None = None
        self._writing = asyncio.Lock()
        self._written: object = None
        self._is_open = False

    def read(self) -> dict[str, SeenHost]:
        try:
            found = json.loads(read_regular(self._path))
            read = {name: _read_one(name, one) for name, one in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            log.warning("%s cannot be used: %s", self._path, problem)
            return {}
        return read

    def open(self) -> None:
        """From now on what the registry knows is written."""
        self._is_open = True
        self._registry.listen(lambda name, news: self._note() if news.get("event") in _EVENTS else None)
        self._registry.remembered.append(self._note)

    def _note(self) -> None:
        if self._timer is None and self._is_open:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._tasks.start(self._write())

    async def _write(self) -> None:
        async with self._writing:
            known = self._registry.last_sessions
            states = [one for one in self._registry.list_hosts() if one.kind == "ssh" and one.last_seen is not None]
            sketch = [(one.name, one.target, one.online, one.since, known.get(one.name)) for one in states]
            if sketch == self._written:
                return
            found = {
                one.name: {
                    "target": one.target,
                    "last_seen": one.last_seen,
                    "version": one.version,
                    "sessions": known.get(one.name, []),
                }
                for one in states
            }
            try:
                await asyncio.to_thread(lambda: write_private(self._path, json.dumps(found).encode() + b"\n"))
            except OSError as problem:
                log.warning("%s could not be written: %s", self._path, problem)
            else:
                self._written = sketch

    async def aclose(self) -> None:
        """Write what is known. To be called while the hosts are still there."""
        if not self._is_open:
            return
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
        if any(one.online for one in self._registry.list_hosts()):
            self._written = None  # they were seen just now
        await self._write()


_EVENTS = frozenset({"host_changed", "host_removed"})


def _read_one(name: str, one: JsonObject) -> SeenHost:
    """Raises ValueError, TypeError, KeyError."""
    target, version, sessions = one["target"], one.get("version"), one["sessions"]
    if not isinstance(target, str) or not isinstance(version, str | None) or not isinstance(sessions, list):
        raise ValueError(f"what is said of {name}")
    for session in sessions:
        if not str(session["name"]).startswith(f"{name}/") or not isinstance(session["tags"], list):
            raise ValueError(f"a session of {name}")
    return SeenHost(target, float(str(one["last_seen"])), version, sessions)
