"""The suite while single processes lose the processor for a moment, again and again: what is decided by time shows itself.

    python -m tests.support.stall [PYTEST WORDS...]

Each process of the run, its servers and shells too, stands still for a while about every `GAP_S`. The kernel's freezer does
it, of which no program is told: there is no signal and no job control. That needs root and control groups.
"""

from __future__ import annotations

import heapq
import os
import random
import secrets
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.support.stress import TESTS

GAP_S, SHORTEST_S, LONGEST_S = 15.0, 0.2, 2.0
TICK_S = 0.01
_FREEZERS = (
    (Path("/sys/fs/cgroup"), "cgroup.freeze", "1"),
    (Path("/sys/fs/cgroup/unified"), "cgroup.freeze", "1"),
    (Path("/sys/fs/cgroup/freezer"), "freezer.state", "FROZEN"),
)


class Freezer:
    """Two control groups: what is moved from one to the other stands still."""

    def __init__(self, base: Path, switch: str, on: str) -> None:
        self.folder = base / f"wsh-stall-{os.getpid()}"
        self._awake, self._frozen = self.folder / "awake", self.folder / "frozen"
        try:
            for group in (self._awake, self._frozen):
                group.mkdir(parents=True)
            if not (self._frozen / switch).exists():
                raise FileNotFoundError(switch)
            (self._frozen / switch).write_text(on)
        except OSError:
            self.close()
            raise

    def enter(self) -> None:
        """Put the calling process, and with it all that it starts, under the freezer."""
        (self._awake / "cgroup.procs").write_text(str(os.getpid()))

    def list_awake(self) -> list[int]:
        return _members(self._awake)

    def freeze(self, pid: int) -> None:
        with suppress(OSError):  # it has ended
            (self._frozen / "cgroup.procs").write_text(str(pid))

    def thaw(self, due: set[int]) -> None:
        """Wake all but those; also what a process that was stopped in the middle of a fork has brought along."""
        for pid in _members(self._frozen):
            if pid not in due:
                with suppress(OSError):
                    (self._awake / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        with suppress(OSError):
            self.thaw(set())
        for group in (self._frozen, self._awake, self.folder):
            with suppress(OSError):  # something of the run still lives
                group.rmdir()


def _members(group: Path) -> list[int]:
    return [int(word) for word in (group / "cgroup.procs").read_text().split()]


def find_freezer() -> Freezer | None:
    for base, switch, on in _FREEZERS:
        try:
            return Freezer(base, switch, on)
        except OSError:
            continue
    return None


def run_stalled(freezer: Freezer, command: list[str], seed: str) -> int:
    """Run the command under the freezer and return its status."""
    dice = random.Random(seed)
    stopped: list[tuple[float, int]] = []
    pause_until = 0.0
    with subprocess.Popen(command, preexec_fn=freezer.enter) as process:
        try:
            while process.poll() is None:
                now = time.monotonic()
                if stopped and stopped[0][0] <= now:
                    while stopped and stopped[0][0] <= now:
                        heapq.heappop(stopped)
                    freezer.thaw({pid for _, pid in stopped})
                if now >= pause_until:
                    awake = freezer.list_awake()
                    pause_until = now + dice.expovariate(max(1, len(awake)) / GAP_S)
                    if awake:
                        chosen = dice.choice(awake)
                        heapq.heappush(stopped, (now + dice.uniform(SHORTEST_S, LONGEST_S), chosen))
                        freezer.freeze(chosen)
                time.sleep(TICK_S)
        finally:
            freezer.thaw(set())
        return process.wait()


def main(arguments: list[str]) -> int:
    freezer = find_freezer()
    if freezer is None:
        print("make stall-test needs root and control groups that can be frozen.", file=sys.stderr)
        return 2
    seed = os.environ.get("WSH_STRESS_SEED") or secrets.token_hex(4)
    print(f"WSH_STRESS_SEED={seed}", flush=True)
    try:
        return run_stalled(freezer, [sys.executable, "-m", "pytest", *(arguments or TESTS), "-rfE"], seed)
    finally:
        freezer.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
