"""Sessions while no server runs, as their folders and the kernel tell them. Nothing is asked of the keeper, which serves one server at a time."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wsh.wire.json.object import JsonObject

_TOLD = ("name", "pid", "command", "rows", "cols", "tags", "exit_code")
_KEEPER = b"wsh/process/keeper/main.py"


def list_kept(tags: Iterable[str] = ()) -> list[JsonObject]:
    """The oldest first. `state` is `kept` where the program goes on with the keeper, else `exited`."""
    import json

    from wsh.wire.system.place import find_places
    from wsh.wire.system.private_file import read_regular

    found: list[tuple[float, JsonObject]] = []
    held = find_held()
    try:
        folders = list(find_places().sessions.iterdir())
    except OSError:
        return []
    for folder in folders:
        try:
            meta = json.loads(read_regular(folder / "meta.json"))
            told: JsonObject = {key: meta[key] for key in _TOLD}
            made = float(meta["created"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not a whole description: the next server looks at it
        running = told["pid"] in held
        if all(tag in told["tags"] for tag in tags):
            found.append((made, told | {"running": running, "state": "kept" if running else "exited"}))
    return [told for _, told in sorted(found, key=lambda one: one[0])]


def find_held() -> set[int]:
    """Processes that the keeper of this place started and that go on."""
    from wsh.wire.system.place import find_places

    place = os.fsencode(find_places().keeper_socket)
    parents: dict[int, int] = {}
    keepers = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
            with open(f"/proc/{name}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except (OSError, ValueError):
            continue
        if state != b"Z":
            parents[int(name)] = int(parent)
        if place in words and any(word.endswith(_KEEPER) for word in words):
            keepers.add(int(name))
    return {pid for pid, parent in parents.items() if parent in keepers}
