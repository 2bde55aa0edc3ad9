"""Processes: the keeper that outlives us, its client, spawning, killing a tree, headless runs.

Knows bytes, offsets, descriptors and signals; knows no escape sequence, no session name and no policy.
"""

from wsh.process.child_handle import ChildHandle, InputClosed
from wsh.process.keeper_client import KeeperClient
from wsh.process.ring import Ring
from wsh.process.runner import HeadlessRun, RunResult, run, start
from wsh.process.spec import (
    ConfinementSpec,
    ExitStatus,
    JournalSpec,
    KeeperOptions,
    KillReport,
    ProcessInfo,
    ProcessState,
    SpawnSpec,
)

__all__ = [
    "ChildHandle",
    "ConfinementSpec",
    "ExitStatus",
    "HeadlessRun",
    "InputClosed",
    "JournalSpec",
    "KeeperClient",
    "KeeperOptions",
    "KillReport",
    "ProcessInfo",
    "ProcessState",
    "Ring",
    "RunResult",
    "SpawnSpec",
    "run",
    "start",
]
