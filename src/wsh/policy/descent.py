"""Is this process one that a session or a headless command started?

What runs in wsh's own terminals must not change the policy that governs it. Everything the keeper starts carries a
mark (RLIMIT_RTTIME of 2^50 and more) and stays below the keeper in the tree of processes, since the keeper adopts
orphans. Either is enough; a limit that was lowered to lose the mark counts as well.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MARK_BASE = 1 << 50
_LIMIT = re.compile(r"^Max realtime timeout\s+(\S+)\s+(\S+)", re.MULTILINE)


def is_keepers_descendant(pid: int | None = None, proc: Path = Path("/proc")) -> bool:
    """True as well when it cannot be told."""
    current = os.getpid() if pid is None else pid
    for _ in range(1024):
        folder = proc / str(current)
        try:
            limits = (folder / "limits").read_text()
            command = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except FileNotFoundError:
            return current == (os.getpid() if pid is None else pid)
        except (OSError, ValueError, IndexError):
            return True
        if _is_marked(limits) or b"process/keeper/main.py" in command:
            return True
        if parent <= 0 or parent == current:
            return False
        current = parent
    return True


def _is_marked(limits: str) -> bool:
    found = _LIMIT.search(limits)
    if found is None:
        return True
    return any(value != "unlimited" for value in found.groups())
