"""Processes: the keeper that outlives us, its client, spawning, killing a tree, headless runs.

Knows bytes, offsets, descriptors and signals; knows no escape sequence, no session name and no policy.
"""

from wsh.process.child import Child, InputClosed
from wsh.process.client import Keeper
from wsh.process.ring import Ring
from wsh.process.runner import Run, RunResult, run, start
from wsh.process.spec import (
    Confinement,
    ExitStatus,
    JournalSpec,
    KeeperOptions,
    KillReport,
    ProcessInfo,
    ProcessState,
    SpawnSpec,
)

__all__ = [
    "Child",
    "Confinement",
    "ExitStatus",
    "InputClosed",
    "JournalSpec",
    "Keeper",
    "KeeperOptions",
    "KillReport",
    "ProcessInfo",
    "ProcessState",
    "Ring",
    "Run",
    "RunResult",
    "SpawnSpec",
    "run",
    "start",
]
