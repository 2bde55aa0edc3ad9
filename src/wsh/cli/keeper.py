"""Ending sessions where no server runs, or it does not answer: straight through the keeper that holds their programs."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from wsh.process import KeeperClient, KeeperOptions
from wsh.sandbox.point import SandboxLedger
from wsh.wire.error import KeeperGone, SessionNotFound
from wsh.wire.setting import SettingError, load
from wsh.wire.system.place import Places, find_places
from wsh.wire.system.private_file import read_regular

_GRACE_MS = 2000


def stop_keeper() -> int | None:
    """End every session, the keeper, and the connections to hosts. Returns how many programs there were; None if no keeper runs."""
    places = find_places()

    async def work() -> int | None:
        keeper = await _reach(places)
        if keeper is None:
            return None
        count = len(keeper.children)
        await keeper.stop(_GRACE_MS)
        return count

    count = asyncio.run(work())
    end_connections(places)
    if count is not None:
        _get_ledger(places).sweep(())
        for folder, _ in _folders(places):
            shutil.rmtree(folder, ignore_errors=True)
    return count


def _get_ledger(places: Places) -> SandboxLedger:
    """What the sandboxes of a server have made in the file system."""
    return SandboxLedger(places.state / "sandbox", places.server)


def end_connections(places: Places) -> None:
    """End the ssh connections to hosts that a server left when it was killed."""
    if not (places.config / "hosts.json").exists():
        return
    from wsh.host.ssh.book import end_left_masters
    from wsh.wire.error import StateConflict

    try:
        asyncio.run(end_left_masters(places, load(places.config_file)))
    except (OSError, SettingError, StateConflict):
        pass  # what is asked for is the end of sessions, and that does not depend on them


def count_children() -> int | None:
    """Programs that the keeper holds; None if no keeper runs."""

    async def work() -> int | None:
        keeper = await _reach(find_places())
        if keeper is None:
            return None
        try:
            return len(keeper.children)
        finally:
            await keeper.aclose()

    return asyncio.run(work())


def kill_session(name: str) -> None:
    """End the session's whole tree and remove what is kept of it. Raises SessionNotFound."""
    places = find_places()

    async def work() -> bool:
        keeper = await _reach(places)
        if keeper is None:
            return False
        try:
            for child in list(keeper.children.values()):
                meta = child.meta  # kept by the keeper, as long as it has the child
                if isinstance(meta, dict) and meta.get("name") == name:
                    await keeper.kill_tree(child, _GRACE_MS)
                    await child.exited
                    await keeper.forget(child)
                    _get_ledger(places).remove(str(meta["sid"]))
                    shutil.rmtree(places.sessions / str(meta["sid"]), ignore_errors=True)
                    return True
            return False
        finally:
            await keeper.aclose()

    if asyncio.run(work()):
        return
    for folder, known in _folders(places):
        if known == name:
            _get_ledger(places).remove(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
            return
    raise SessionNotFound(name)


async def _reach(places: Places) -> KeeperClient | None:
    if not places.keeper_socket.exists():
        return None
    try:
        return await KeeperClient.open(places, KeeperOptions(start=False))
    except KeeperGone:
        return None


def _folders(places: Places) -> Iterator[tuple[Path, str]]:
    """The sessions' folders, with the names in them."""
    try:
        found = sorted(places.sessions.iterdir())
    except OSError:
        return
    for folder in found:
        try:
            name = json.loads(read_regular(folder / "meta.json"))["name"]
        except (OSError, ValueError, KeyError, TypeError):
            name = ""
        yield folder, str(name)
