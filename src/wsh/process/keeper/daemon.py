"""Becoming a daemon: own session, no terminal, no inherited descriptors, reaper of all descendants."""

from __future__ import annotations

import gc
import os
import signal
import sys

from wsh.process.keeper import libc
from wsh.process.keeper.core import Keeper
from wsh.process.keeper.door import Door
from wsh.process.keeper.loop import Loop, complain
from wsh.process.keeper.start import spawn

_DEAF_TO = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM)


def start(socket_path: str, secret_path: str, log_path: str, linger_s: str) -> None:
    """Fork twice; the first process exits when the daemon listens, or with its complaint."""
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        complaint = os.read(ready, 4096)
        if complaint != b"ready":
            sys.stderr.write(complaint.decode("utf-8", "replace") or "the keeper ended at once\n")
            os._exit(1)
        os._exit(0)
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        _let_go(log_path, tell)
        limits = spawn.KeeperLimits()
        libc.become_reaper()
        libc.hide_memory()
        keeper = Keeper(Door(Loop(), socket_path, secret_path), float(linger_s), limits)
        os.write(tell, b"ready")
        os.close(tell)
    except BaseException as problem:
        os.write(tell, f"the keeper cannot start: {problem!r}\n".encode())
        os._exit(1)
    gc.collect()
    gc.freeze()
    try:
        keeper.run()
    except BaseException:
        complain("everything")
        os._exit(1)
    os._exit(0)


def _let_go(log_path: str, keep: int) -> None:
    """Drop what we inherited: folder, descriptors, ignored signals."""
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR)
    try:
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:  # a full disk: terminals without a log are better than none
        log = null
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(log, 2)
    os.closerange(3, keep)
    os.closerange(keep + 1, 1 << 20)
    os.set_inheritable(keep, False)
    for number in range(1, signal.NSIG):
        if number in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            continue
        if number in _DEAF_TO:  # a handler that does nothing, and not SIG_IGN: children would inherit that
            signal.signal(number, _ignore)
        elif signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _ignore(number: int, frame: object) -> None:
    pass
