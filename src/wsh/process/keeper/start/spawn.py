"""From a request to a running program, or to an error that leaves nothing behind.

The child side runs in a fork of the keeper and must not return. What fails there is told through a pipe that closes
itself when the program is executed.
"""

from __future__ import annotations

import fcntl
import os
import resource
import struct
import termios

from wsh.process.keeper.start.confine import Confinement

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from typing import NoReturn

    from wsh.wire.json.object import JsonObject


RLIMIT_RTTIME = getattr(resource, "RLIMIT_RTTIME", 15)
RLIMIT_LOCKS = 10  # without effect since Linux 2.6: a second place for the mark
_LOWEST_SAFE_FD = 16
_SAFE_FD = 256  # descriptors that must not collide with the numbers a child wants are moved above this

STAGE_CWD = "cwd"
STAGE_PROGRAM = "program"
STAGE_SETUP = "setup"
STAGE_SANDBOX = "sandbox"


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class KeeperLimits:
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


class SpawnPlan:
    """A request made ready before the fork: what is touched after it is copied page by page."""

    __slots__ = (
        "argv",
        "confinement",
        "cwd",
        "cwd_fd",
        "env",
        "extra",
        "identity",
        "limits",
        "mark",
        "path",
        "standard",
        "terminal",
    )

    def __init__(
        self, request: JsonObject, cwd_fd: int | None, mark: int, limits: KeeperLimits, confinement: Confinement | None
    ) -> None:
        self.path = to_bytes(request["path"])
        self.argv = [to_bytes(word) for word in request["argv"]]
        self.env = {to_bytes(key): to_bytes(value) for key, value in request["env"].items()}
        self.cwd = to_bytes(request["cwd"])
        self.cwd_fd = cwd_fd
        self.terminal = bool(request["terminal"])
        self.identity: tuple[int, int] | None = tuple(request["identity"]) if request["identity"] else None
        self.mark = mark
        self.limits = limits
        self.confinement = confinement
        self.standard: list[int] = []
        self.extra: list[tuple[int, int]] = []


class Started:
    """What the parent has after the fork. `error_fd` is readable when the outcome is known."""

    __slots__ = ("error_fd", "pid", "sources", "stdin_fd")

    def __init__(self, pid: int, error_fd: int, sources: list[int], stdin_fd: int) -> None:
        self.pid = pid
        self.error_fd = error_fd
        self.sources = sources
        self.stdin_fd = stdin_fd


def start(
    request: JsonObject, cwd_fd: int | None, mark: int, limits: KeeperLimits, confinement: Confinement | None = None
) -> Started:
    """Fork and set up. Raises OSError if the system has no pty, pipe or process left; nothing stays open then."""
    plan = SpawnPlan(request, cwd_fd, mark, limits, confinement)
    opened: list[int] = []
    theirs: list[int] = []

    def pipe(ours: int, *, blocking: bool = False) -> tuple[int, int]:
        """A pipe of which the child gets one end; `ours` is the index of the other."""
        ends = os.pipe2(os.O_CLOEXEC)
        opened.extend(ends)
        theirs.append(ends[1 - ours])
        if not blocking:
            os.set_blocking(ends[ours], False)
        return ends

    stdin_fd = -1
    try:
        error_read, error_write = pipe(0, blocking=True)
        if plan.terminal:
            master, slave = open_terminal(request["rows"], request["cols"])
            opened += [master, slave]
            theirs.append(slave)
            sources = [master]
            plan.standard = [slave, slave, slave]
        else:
            out_read, out_write = pipe(0)
            err_read, err_write = pipe(0)
            if request["stdin"] == "pipe":
                stdin_read, stdin_fd = pipe(1)
            else:
                stdin_read = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
                opened.append(stdin_read)
                theirs.append(stdin_read)
            sources = [out_read, err_read]
            plan.standard = [stdin_read, out_write, err_write]
        for number, content in request["extra_fds"]:
            read, write = pipe(1)
            plan.extra.append((int(number), read))
            os.write(write, to_bytes(content))
            os.close(write)
            opened.remove(write)
        pid = os.fork()
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    if pid == 0:
        _become(plan, error_write)
    for fd in theirs:
        os.close(fd)
    return Started(pid, error_read, sources, stdin_fd)


def _become(plan: SpawnPlan, error_fd: int) -> NoReturn:
    """The child. Signals need no care: the keeper ignores none, and handlers end with the exec."""
    stage = STAGE_SETUP
    try:
        os.setsid()
        if plan.terminal:
            fcntl.ioctl(plan.standard[0], termios.TIOCSCTTY, 0)
        if (
            plan.extra or plan.confinement is not None
        ):  # the numbers a child wants may be in use here: move what we need out of the way
            error_fd = _move(error_fd)
            plan.cwd_fd = _move(plan.cwd_fd) if plan.cwd_fd is not None else None
            plan.standard = [_move(fd) for fd in plan.standard]
            plan.extra = [(number, _move(fd)) for number, fd in plan.extra]
        if plan.confinement is not None:
            plan.confinement.move_fds({fd: _move(fd) for fd in plan.confinement.list_fds()})
            plan.confinement.hold()
        for number, fd in enumerate(plan.standard):
            os.dup2(fd, number)
        for number, fd in plan.extra:
            os.dup2(fd, number)
        _set_mark(plan.mark)
        resource.setrlimit(resource.RLIMIT_NOFILE, plan.limits.nofile)
        stage = STAGE_CWD
        if plan.cwd_fd is not None:
            os.fchdir(plan.cwd_fd)
        else:
            os.chdir(plan.cwd)
        if plan.confinement is not None:
            stage = STAGE_SANDBOX
            plan.confinement.apply(plan.standard[0] if plan.terminal else None)
        stage = STAGE_PROGRAM
        if plan.identity is not None:
            _execute_decided(plan.path, plan.argv, plan.env, plan.identity)
        os.execve(plan.path, plan.argv, plan.env)
    except OSError as problem:
        os.write(error_fd, b"%s %d" % (stage.encode(), problem.errno or 5))
    except BaseException as problem:
        os.write(error_fd, b"%s 5 %s" % (stage.encode(), repr(problem).encode()[:500]))
    finally:
        os._exit(127)


def _move(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD)
    except OSError:  # the limit lies below: it starts at the bottom then, beyond what a child may want
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_SAFE_FD)


def _set_mark(mark: int) -> None:
    """The mark is the soft *and* hard limit, so that an ordinary program cannot take it off by raising a limit.

    A lower hard limit that we were started with stays as it is; the other place then carries the mark alone.
    """
    for place in (RLIMIT_RTTIME, RLIMIT_LOCKS):
        try:
            resource.setrlimit(place, (mark, mark))
        except (ValueError, OSError):
            pass


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
