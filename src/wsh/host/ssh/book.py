"""The list of ssh hosts on disk, and a carrier for each."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.host.address import check_host_name
from wsh.host.registry import HostRegistry
from wsh.host.ssh.carrier import SshCarrier, SshTiming
from wsh.host.ssh.master import SshMaster, SshTarget
from wsh.host.ssh.socket_name import find_folder, make_name
from wsh.wire.error import LimitReached, StateConflict, WshError
from wsh.wire.system.private_file import write_private
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.wire.setting import Settings
    from wsh.wire.system.place import Places

log = logging.getLogger("wsh.host")


class SshBook:
    """`hosts.json` in the configuration folder: name, target, and how wsh is called there if not as usual."""

    def __init__(self, places: Places, settings: Settings, registry: HostRegistry, here: str) -> None:
        self._path = places.config / "hosts.json"
        self._runtime = places.runtime
        self._server = places.server
        self._settings = settings
        self._registry = registry
        self._here = here
        self._entries: dict[str, dict[str, str]] = {}
        self._changing = asyncio.Lock()
        """Held from the look at the list until it is written: of two changes at once, the second begins with the first."""

    def open(self) -> None:
        """Begin to connect to every host of the list."""
        self._entries = read_entries(self._path)
        for name, entry in self._entries.items():
            try:
                self._open(name, entry)
            except (WshError, OSError) as problem:
                log.warning("host %s cannot be used: %s", name, problem)

    async def add(self, name: str, target: str, command: str | None) -> None:
        """Raises StateConflict for a name that is taken."""
        check_host_name(name)
        async with self._changing:
            if name in self._registry:
                raise StateConflict(
                    f"There is a host {name!r} already.", hint="Remove it first, or choose another name."
                )
            most = self._settings.get_int("hosts.max_hosts")
            if len(self._entries) >= most:
                raise LimitReached("hosts", most, "hosts.max_hosts")
            entry = {"target": target} | ({} if command is None else {"command": command})
            await self._write(self._entries | {name: entry})
            self._open(name, entry)

    async def remove(self, name: str) -> None:
        async with self._changing:
            await self._write({known: entry for known, entry in self._entries.items() if known != name})
            await self._registry.remove(name)

    async def _write(self, entries: dict[str, dict[str, str]]) -> None:
        await asyncio.to_thread(write_private, self._path, json.dumps(entries, indent=2).encode() + b"\n")
        self._entries = entries

    def _open(self, name: str, entry: dict[str, str]) -> None:
        settings = self._settings
        target = _make_target(name, entry, settings, self._server)
        timing = SshTiming(
            connect_s=settings.get_float("hosts.connect_timeout_s"),
            resume_s=settings.get_float("hosts.resume_s"),
            longest_pause_s=settings.get_float("hosts.longest_pause_s"),
            silent_s=settings.get_float("hosts.silent_s"),
        )
        self._registry.add(SshCarrier(target, find_folder(self._runtime), self._here, timing))


def _make_target(name: str, entry: dict[str, str], settings: Settings, server: str) -> SshTarget:
    words = tuple(settings.get_list("hosts.ssh"))
    return SshTarget(name, entry["target"], words, entry.get("command"), VERSION, server)


async def end_left_masters(places: Places, settings: Settings) -> None:
    """End the ssh connections that a server which was killed left behind. Called while no server uses them."""
    for name, entry in read_entries(places.config / "hosts.json").items():
        target = _make_target(name, entry, settings, places.server)
        socket_name = make_name(places.server, name, target.target)
        await SshMaster(target, find_folder(places.runtime), socket_name).end_predecessor()


def read_entries(path: Path) -> dict[str, dict[str, str]]:
    """What the file says; nothing for one that cannot be read, which is told in the log."""
    try:
        found = json.loads(path.read_bytes())
        return {str(name): dict(entry) for name, entry in found.items() if isinstance(entry.get("target"), str)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as problem:
        log.warning("%s cannot be used: %s", path, problem)
        return {}
