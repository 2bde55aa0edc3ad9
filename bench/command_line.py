"""wsh by its command line, for measuring."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def start_wsh_server(environ: dict[str, str]) -> Iterator[None]:
    """A server of its own for `environ` that has come to rest, stopped with its sessions afterwards."""
    wsh = [sys.executable, "-m", "wsh.cli.main"]
    subprocess.run([*wsh, "new", "sleep 1000"], check=True, env=environ, capture_output=True)
    try:
        status = subprocess.run([*wsh, "status", "--json"], check=True, env=environ, capture_output=True).stdout
        rest(int(json.loads(status)["pid"]))
        yield
    finally:
        subprocess.run([*wsh, "stop"], check=False, env=environ, capture_output=True)


def rest(pid: int) -> None:
    """Return when that process has nothing to do: a new server opens its larger rooms beside the first requests."""
    deadline = time.monotonic() + 30
    used = _processor_time(pid)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        before, used = used, _processor_time(pid)
        if used == before:
            return


def _processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def wsh_start_time(environ: dict[str, str], n: int) -> float:
    """Milliseconds from calling `wsh new` until the program it starts runs."""
    mark = Path(environ["HOME"]) / f"wsh-{n}"
    wsh = Path(sys.executable).parent / "wsh"
    started = time.perf_counter()
    subprocess.run([str(wsh), "new", f"touch {mark}; exec cat"], check=True, env=environ, capture_output=True)
    while not mark.exists():
        time.sleep(0.0005)
    return (time.perf_counter() - started) * 1000
