"""git, run behind the guard by the process that asks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from wsh.git.guard import Unguarded, guard


def run_guarded(
    cwd: str, argv: Sequence[str], settings: bytes, timeout_s: float
) -> subprocess.CompletedProcess[bytes] | None:
    """What became of `argv` in `cwd`; None where git could not be run, or had not ended in time.

    `settings` is the answer to `wsh.git.guard.query`.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    # A folder may bring a git of its own.
    kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept.get("PATH", os.defpath).split(os.pathsep)))
    try:
        guarded = guard(argv, settings)
        return subprocess.run(
            guarded.argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=kept | guarded.env | {"LC_ALL": "C"},
            timeout=timeout_s,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired, Unguarded):
        return None
