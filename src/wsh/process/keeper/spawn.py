"""From a request to a running program, or to an error that leaves nothing behind.

The child side runs in a fork of the keeper and must not return. What fails there is told through a pipe that closes
itself when the program is executed.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import struct
import termios
from typing import Any, NoReturn

RLIMIT_RTTIME = getattr(resource, "RLIMIT_RTTIME", 15)
_SAFE_FD = 256  # descriptors that must not collide with the numbers a child wants are moved above this

STAGE_CWD = "cwd"
STAGE_PROGRAM = "program"
STAGE_SETUP = "setup"


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class Limits:
    """Resource limits of the keeper that its children must not inherit."""

    def __init__(self) -> None:
        self.nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.rttime = resource.getrlimit(RLIMIT_RTTIME)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.nofile[1], self.nofile[1]))
        except (ValueError, OSError):
            pass


def open_terminal(rows: int, cols: int) -> tuple[int, int]:
    """A new pty as (master, slave), of that size, with UTF-8 line editing."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    attributes = termios.tcgetattr(slave)
    attributes[0] |= 0o40000  # IUTF8
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    os.set_blocking(master, False)
    return master, slave


def _plain_pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC)


class Started:
    """What the parent has after the fork. `error_fd` is readable when the outcome is known."""

    __slots__ = ("error_fd", "pid", "sources", "stdin_fd")

    def __init__(self, pid: int, error_fd: int, sources: list[int], stdin_fd: int) -> None:
        self.pid = pid
        self.error_fd = error_fd
        self.sources = sources
        self.stdin_fd = stdin_fd


def start(request: dict[str, Any], cwd_fd: int | None, mark: int, limits: Limits) -> Started:
    """Fork and set up. Raises OSError if the system has no pty, pipe or process left; nothing stays open then."""
    opened: list[int] = []
    try:
        error_read, error_write = _plain_pipe()
        opened += [error_read, error_write]
        stdin_fd = -1
        if request["terminal"]:
            master, slave = open_terminal(request["rows"], request["cols"])
            opened += [master, slave]
            sources = [master]
            standard = [slave, slave, slave]
            theirs = [slave, error_write]
        else:
            out_read, out_write = _plain_pipe()
            opened += [out_read, out_write]
            err_read, err_write = _plain_pipe()
            opened += [err_read, err_write]
            if request["stdin"] == "pipe":
                stdin_read, stdin_fd = _plain_pipe()
                opened += [stdin_read, stdin_fd]
                os.set_blocking(stdin_fd, False)
            else:
                stdin_read = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
                opened.append(stdin_read)
            for fd in (out_read, err_read):
                os.set_blocking(fd, False)
            sources = [out_read, err_read]
            standard = [stdin_read, out_write, err_write]
            theirs = [stdin_read, out_write, err_write, error_write]
        extra: list[tuple[int, int]] = []
        for number, content in request["extra_fds"]:
            read, write = _plain_pipe()
            opened += [read, write]
            os.set_blocking(write, False)
            os.write(write, to_bytes(content))
            os.close(write)
            opened.remove(write)
            theirs.append(read)
            extra.append((int(number), read))
        pid = os.fork()
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    if pid == 0:
        _become(request, cwd_fd, mark, limits, standard, extra, error_write)
    for fd in theirs:
        os.close(fd)
    return Started(pid, error_read, sources, stdin_fd)


def _become(
    request: dict[str, Any],
    cwd_fd: int | None,
    mark: int,
    limits: Limits,
    standard: list[int],
    extra: list[tuple[int, int]],
    error_fd: int,
) -> NoReturn:
    stage = STAGE_SETUP
    try:
        os.setsid()
        if request["terminal"]:
            fcntl.ioctl(standard[0], termios.TIOCSCTTY, 0)
        error_fd = fcntl.fcntl(error_fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD)
        standard = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD) for fd in standard]
        extra = [(number, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD)) for number, fd in extra]
        if cwd_fd is not None:
            cwd_fd = fcntl.fcntl(cwd_fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD)
        for number, fd in [*enumerate(standard), *extra]:
            os.dup2(fd, number, inheritable=True)
        for number in range(1, signal.NSIG):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                try:
                    signal.signal(number, signal.SIG_DFL)
                except (OSError, ValueError):
                    pass  # the two that the C library keeps for itself
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        _set_mark(mark)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits.nofile)
        stage = STAGE_CWD
        if cwd_fd is not None:
            os.fchdir(cwd_fd)
        else:
            os.chdir(to_bytes(request["cwd"]))
        stage = STAGE_PROGRAM
        path = to_bytes(request["path"])
        argv = [to_bytes(word) for word in request["argv"]]
        env = {to_bytes(key): to_bytes(value) for key, value in request["env"].items()}
        identity = request["identity"]
        if identity is not None:
            _execute_decided(path, argv, env, (identity[0], identity[1]))
        os.execve(path, argv, env)
    except OSError as problem:
        os.write(error_fd, b"%s %d" % (stage.encode(), problem.errno or 5))
    except BaseException as problem:
        os.write(error_fd, b"%s 5 %s" % (stage.encode(), repr(problem).encode()[:500]))
    finally:
        os._exit(127)


def _set_mark(mark: int) -> None:
    """The mark is the soft *and* hard limit, so that an ordinary program cannot take it off by raising a limit."""
    try:
        resource.setrlimit(RLIMIT_RTTIME, (mark, mark))
    except (ValueError, OSError):
        hard = resource.getrlimit(RLIMIT_RTTIME)[1]
        resource.setrlimit(RLIMIT_RTTIME, (mark if hard == -1 else min(mark, hard), hard))


def _execute_decided(path: bytes, argv: list[bytes], env: dict[bytes, bytes], identity: tuple[int, int]) -> None:
    """Execute exactly the file that was decided on, or fail with ESTALE.

    A binary is executed through the descriptor that was checked. A script cannot be (its interpreter would open a
    descriptor that is closed by then), so it is checked and then executed by path.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != identity:
        raise OSError(116, "another file is there by now")
    if os.pread(fd, 2, 0) != b"#!":
        os.execve(fd, argv, env)


def read_outcome(fd: int) -> tuple[str, int] | None:
    """None if the program runs, else the stage that failed and its errno."""
    data = os.read(fd, 1024)
    if not data:
        return None
    stage, number, *_ = data.decode("utf-8", "replace").split(" ", 2)
    return stage, int(number)
