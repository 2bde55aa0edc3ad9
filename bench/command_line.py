"""wsh by its command line, for measuring."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def start_wsh_server(environ: dict[str, str]) -> Iterator[None]:
    """A server of its own for `environ`, stopped with its sessions afterwards."""
    wsh = [sys.executable, "-m", "wsh.cli.main"]
    subprocess.run([*wsh, "list"], check=True, env=environ, capture_output=True)
    try:
        yield
    finally:
        subprocess.run([*wsh, "stop"], check=False, env=environ, capture_output=True)


def wsh_start_time(environ: dict[str, str], n: int) -> float:
    """Milliseconds from calling `wsh new` until the program it starts runs."""
    mark = Path(environ["HOME"]) / f"wsh-{n}"
    wsh = Path(sys.executable).parent / "wsh"
    started = time.perf_counter()
    subprocess.run([str(wsh), "new", f"touch {mark}; exec cat"], check=True, env=environ, capture_output=True)
    while not mark.exists():
        time.sleep(0.0005)
    return (time.perf_counter() - started) * 1000
