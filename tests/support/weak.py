"""Being an ordinary user in a test, also where the tests run as root: without the rights that no session of a user has."""

from __future__ import annotations

import os


def weakly(*more: str) -> list[str]:
    """A command prefix that takes away the right to raise limits, to look into every process, and `more`."""
    if os.geteuid() != 0:
        return []
    rights = ",".join(f"-{name}" for name in ("sys_resource", "sys_ptrace", *more))
    return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
