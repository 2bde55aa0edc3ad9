"""Programs that left their terminal's session and live on: the keeper has adopted them, and their mark says whose they are.

Read by the server itself from /proc, because a walk over all processes would be too dear after every command: the keeper's own
list of children is one file.
"""

from __future__ import annotations

from collections.abc import Collection

from wsh.process.keeper.tree.inspect import describe
from wsh.process.keeper.tree.mark import is_alive, read_mark
from wsh.process.spec import ProcessInfo

_MOST = 64


def list_children(pid: int) -> list[int]:
    """Direct children of a process, as its main thread made or adopted them; none if that cannot be read."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def list_orphans(keeper_pid: int, leaders: Collection[int], mark: int) -> tuple[ProcessInfo, ...]:
    """Adopted processes that carry `mark`; `leaders` are the children that the keeper started itself."""
    found = []
    for pid in list_children(keeper_pid):
        if pid not in leaders and read_mark(pid) == mark and is_alive(pid):
            facts = describe(pid)
            found.append(ProcessInfo(pid, tuple(facts["argv"]), facts["comm"]))
            if len(found) == _MOST:
                break
    return tuple(found)
