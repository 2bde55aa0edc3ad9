"""Whether the terminal engine loads, asked in a process of its own so that a broken library cannot take us along."""

from __future__ import annotations

import subprocess
import sys

_CODE = "import pyghostty; from pyghostty._ffi import lib; print(pyghostty.__version__)"


def probe_engine(timeout_s: float = 20.0) -> str:
    """The engine's version. Raises RuntimeError with what went wrong."""
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
    return done.stdout.strip()
