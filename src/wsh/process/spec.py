"""The values that cross between the keeper's client and those who use it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wsh.wire.setting import KIB, MIB

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class JournalSpec:
    """Where the keeper writes what a terminal prints. The folder must exist."""

    folder: str
    segment_bytes: int = 8 * MIB
    session_bytes: int = 256 * MIB


@dataclass(frozen=True)
class ConfinementSpec:
    """What the keeper puts on a child between fork and exec. A keeper that cannot refuses the spawn."""

    ruleset_fd: int | None = None
    """A Landlock ruleset; the caller keeps the descriptor."""
    terminal_access: int = 0
    """What the ruleset is to allow on the child's own terminal."""
    filter: bytes = b""
    """A seccomp program."""
    held: Mapping[int, int] = field(default_factory=dict)
    """Descriptors that the program gets: its number to ours, which the caller keeps."""
    ignored: Sequence[int] = ()
    """Signals that are ignored at the exec."""
    limits: Sequence[tuple[int, int]] = ()
    """Resource limits and their values, soft and hard."""
    wrapped: bool = False
    """Whether argv is bubblewrap, with the program behind it."""


@dataclass(frozen=True)
class SpawnSpec:
    """One program to start. `argv[0]` is looked up in `env`'s PATH unless `path` names the file."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    path: str | None = None
    rows: int = 24
    cols: int = 80
    terminal: bool = True
    stdin: Literal["null", "pipe"] = "null"  # of a child without a terminal
    cwd_fd: int | None = None  # enter this folder instead of `cwd`; the caller keeps the descriptor
    identity: tuple[int, int] | None = None  # (st_dev, st_ino) the program must have when it is executed
    ring_bytes: int = MIB
    journal: JournalSpec | None = None
    extra_fds: Mapping[int, str] = field(default_factory=dict)  # number to content that can be read there once
    dies_with_server: bool = False
    meta: Mapping[str, object] = field(default_factory=dict)
    confinement: ConfinementSpec | None = None


@dataclass(frozen=True)
class ExitStatus:
    """How a child ended: an exit code, or the signal that killed it."""

    code: int | None
    signal: int | None
    offset: int = 0  # of the first stream, when the exit was announced: all that the child itself printed lies before

    @property
    def shell_code(self) -> int:
        """As a shell counts: 128 + n for signal n."""
        if self.code is not None:
            return self.code
        return 128 + (self.signal or 0)

    @property
    def signal_name(self) -> str | None:
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"SIG{self.signal}"

    @classmethod
    def from_wait(cls, status: int, offset: int) -> ExitStatus:
        if os.WIFSIGNALED(status):
            return cls(None, os.WTERMSIG(status), offset)
        return cls(os.WEXITSTATUS(status), None, offset)


@dataclass(frozen=True)
class KillReport:
    """`survivors` are pids with the errno that protected each (0: it did not die in time)."""

    survivors: tuple[tuple[int, int], ...]
    signalled: int
    forced: tuple[int, ...]
    duration_ms: float


@dataclass(frozen=True)
class ProcessInfo:
    pid: int
    argv: tuple[str, ...]
    comm: str


@dataclass(frozen=True)
class ProcessState:
    """What the kernel says about a child now. `None` is "cannot be known"."""

    running: bool
    foreground_group: int | None = None
    foreground: ProcessInfo | None = None
    cwd: str | None = None
    reading: Answer = "unknown"  # is a process of the foreground group blocked until the terminal has input?
    is_behind: bool = False  # it was, but the last input is on its way to it: only the processor is missing
    plain_read: bool = False  # it is, and in a plain read rather than a poll
    reader: int | None = None  # the process of that group that is, where it can be told
    relayed: bool = False  # the foreground passes the terminal on: `reading` is about what is behind it
    echo: bool | None = None
    canonical: bool | None = None
    jobs: tuple[ProcessInfo, ...] = ()

    @property
    def hidden_prompt(self) -> bool:
        """A password prompt: echo off while the kernel still edits lines, or both off while a command reads."""
        if self.echo is not False:
            return False
        return self.canonical is True


@dataclass(frozen=True)
class KeeperOptions:
    """How a keeper is started and spoken to."""

    linger_s: float = 5.0  # how long a keeper with nothing to keep waits for a server
    connect_timeout_s: float = 30.0
    start: bool = True  # start one if none listens


PLAIN_RING_BYTES = 256 * KIB
