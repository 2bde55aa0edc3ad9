"""Doing something in a throw-away child first, because the terminal engine may die of it.

The child is a copy of this process, so it has every terminal as it is now, and whatever happens there happens to nobody.
It must only visit the engine, read files and write its answer: the locks of other threads are not to be touched.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import pickle
import resource
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wsh.wire.error import WshError

_PR_SET_PDEATHSIG = 1
_FAILED = 7
_libc = ctypes.CDLL(None, use_errno=True)

How: TypeAlias = Literal["lived", "died", "failed"]


@dataclass(frozen=True)
class Fate:
    """`lived` with what `work` returned, `died` of a signal (or ran out of time), or `failed` with an error's wire form."""

    how: How
    signal: int = 0
    answer: Any = None

    @property
    def lived(self) -> bool:
        return self.how == "lived"


def attempt(work: Callable[[], object], limit_s: float) -> Fate:
    """Do `work` in a child and wait for it; `limit_s` of processor time, in whole seconds."""
    pid, fd = _start(work, limit_s)
    try:
        said = _read_all(fd)
    finally:
        status = _reap(pid)
    return _read_fate(status, said)


async def attempt_aside(work: Callable[[], object], limit_s: float, patience_s: float) -> Fate:
    """The same while the loop goes on; a child that takes longer than `patience_s` by the clock is ended."""
    pid, fd = _start(work, limit_s)
    try:
        said = await asyncio.wait_for(asyncio.to_thread(_read_all, fd), patience_s)
    except BaseException as problem:
        os.kill(pid, signal.SIGKILL)
        _reap(pid)
        if isinstance(problem, TimeoutError):
            return Fate("died", signal.SIGKILL)
        raise
    return _read_fate(_reap(pid), said)


def _reap(pid: int) -> int:
    """Wait status of child `pid`, which has closed its pipe or was killed, so this takes no time."""
    return os.waitpid(pid, 0)[1]


def _read_all(fd: int) -> bytearray:
    said = bytearray()
    try:
        while piece := os.read(fd, 1 << 20):
            said += piece
    finally:
        os.close(fd)
    return said


def _start(work: Callable[[], object], limit_s: float) -> tuple[int, int]:
    read, write = os.pipe()
    parent = os.getpid()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which is dealt with above
            pid = os.fork()
    except BaseException:
        os.close(read)
        os.close(write)
        raise
    if not pid:
        _run_child(work, write, limit_s, parent)
    os.close(write)
    return pid, read


def _run_child(work: Callable[[], object], fd: int, limit_s: float, parent: int) -> None:
    """Only in the child; does not return."""
    code = _FAILED
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(code)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGSEGV, signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGTRAP):
            signal.signal(number, signal.SIG_DFL)  # no report: this death was expected
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        seconds = max(1, round(limit_s))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library prints a trace of its panics
        try:
            answer = pickle.dumps(work())
            code = 0
        except WshError as problem:
            answer = pickle.dumps(problem.to_wire())
        with open(fd, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(code)


def _read_fate(status: int, said: bytearray) -> Fate:
    if os.WIFSIGNALED(status):
        return Fate("died", os.WTERMSIG(status))
    answer = pickle.loads(said) if said else None
    return Fate("lived" if os.WEXITSTATUS(status) == 0 and said else "failed", 0, answer)
