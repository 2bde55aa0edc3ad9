"""How many descriptors a process has open."""

from __future__ import annotations

import os


def count_descriptors(pid: int) -> int | None:
    """None where the kernel does not tell: server and keeper hide themselves, and only root may look all the same."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return None
