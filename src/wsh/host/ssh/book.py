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
from wsh.host.ssh.seen import SeenHost, SeenHosts
from wsh.host.ssh.socket_name import find_folder, make_name
from wsh.wire.error import LimitReached, StateConflict, WshError
from wsh.wire.system.private_file import read_regular, write_private
from wsh.wire.version import VERSION

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject
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
        self._seen = SeenHosts(places.config / "hosts-seen.json", registry)
        self._changing = asyncio.Lock()
        """Held from the look at the list until it is written: of two changes at once, the second begins with the first."""

    def open(self) -> None:
        """Begin to connect to every host of the list."""
        seen = self._seen.read()
        try:
            entries = read_entries(self._path)
        except StateConflict as problem:
            log.warning("%s", problem)
            return
        for name, entry in entries.items():
            before = seen.get(name)
            if before is not None and before.target != entry["target"]:
                before = None
            try:
                self._open(name, entry, before)
            except (WshError, OSError) as problem:
                log.warning("host %s cannot be used: %s", name, problem)
            else:
                if before is not None:
                    self._registry.last_sessions[name] = before.sessions
        self._seen.open()

    async def aclose(self) -> None:
        """Keep for the next server what is known of the hosts. The registry is closed after it."""
        await self._seen.aclose()

    async def add(self, name: str, target: str, command: str | None) -> None:
        """Raises StateConflict for a name that is taken, and where the list cannot be read."""
        check_host_name(name)
        async with self._changing:
            if name in self._registry:
                raise StateConflict(
                    f"There is a host {name!r} already.", hint="Remove it first, or choose another name."
                )
            most = self._settings.get_int("hosts.max_hosts")
            listed = await asyncio.to_thread(_read_list, self._path)
            if len(listed) >= most:
                raise LimitReached("hosts", most, "hosts.max_hosts")
            entry = {"target": target} | ({} if command is None else {"command": command})
            await self._write(listed | {name: entry})
            self._open(name, entry)

    async def remove(self, name: str) -> None:
        """Raises StateConflict where the list cannot be read."""
        async with self._changing:
            listed = await asyncio.to_thread(_read_list, self._path)
            await self._write({known: entry for known, entry in listed.items() if known != name})
            await self._registry.remove(name)

    async def _write(self, listed: JsonObject) -> None:
        await asyncio.to_thread(write_private, self._path, json.dumps(listed, indent=2).encode() + b"\n")

    def _open(self, name: str, entry: dict[str, str], seen: SeenHost | None = None) -> None:
        settings = self._settings
        target = _make_target(name, entry, settings, self._server)
        timing = SshTiming(
            connect_s=settings.get_float("hosts.connect_timeout_s"),
            resume_s=settings.get_float("hosts.resume_s"),
            longest_pause_s=settings.get_float("hosts.longest_pause_s"),
            silent_s=settings.get_float("hosts.silent_s"),
        )
        self._registry.add(SshCarrier(target, find_folder(self._runtime), self._here, timing, seen))


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
    """The entries that can be used; the others are told in the log. Raises StateConflict where the list cannot be read."""
    usable: dict[str, dict[str, str]] = {}
    for name, entry in _read_list(path).items():
        if isinstance(entry, dict) and isinstance(entry.get("target"), str) and _is_text(entry.get("command")):
            usable[name] = {key: value for key, value in entry.items() if isinstance(value, str)}
        else:
            log.warning("host %s in %s cannot be used: it has no target, or a command that is no text", name, path)
    return usable


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _read_list(path: Path) -> JsonObject:
    """Every entry of the file as it stands there, also one that cannot be used: what is written keeps it."""
    try:
        found = json.loads(read_regular(path))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as problem:
        raise StateConflict(
            f"The list of hosts {path} cannot be used: {problem}.",
            hint="Correct the file, or move it away and add the hosts again: `wsh host add NAME`.",
        ) from None
    return found
