"""The seccomp program of a sandbox: which system calls fail inside, as the bytes that the kernel takes.

It closes what neither mounts nor Landlock rule: sockets by family and type, other processes, keys, mounts, new namespaces, io_uring (whose
operations no filter sees), typing into terminals. A call of another processor mode, and one newer than this list, does not exist inside.
Arguments are compared by the half that the kernel reads.
"""

from __future__ import annotations

import errno
import functools
import struct
from collections.abc import Mapping

from wsh.sandbox.profile import Profile
from wsh.sandbox.syscall import AUDIT_ARCH, NEWEST, find_number

_LOAD, _JUMP, _EQUAL, _GREATER, _SET, _AND, _RETURN = 0x20, 0x05, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000

_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80
_TYPE_MASK = 0xF
_STREAM, _DGRAM, _SEQPACKET = 1, 2, 5
_UNIX, _INET, _INET6 = 1, 2, 10

TIOCSTI, TIOCLINUX, TIOCCONS = 0x5412, 0x541C, 0x541D
_FS_SETFLAGS, _FS_SETXATTR, _FS_SETVERSION = 0x40086602, 0x401C5820, 0x40087602

_LIMITS = (10, 15)
"""RLIMIT_LOCKS and RLIMIT_RTTIME, by which the keeper knows whom to end with a session."""

_MISSING = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""Answered as by a kernel without them, so that programs use what can be looked at."""

_CLOSED = tuple(
    "_sysctl acct add_key bpf chroot clock_settime delete_module fanotify_init fanotify_mark finit_module fsconfig fsmount fsopen fspick "
    "init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie migrate_pages modify_ldt mount mount_setattr "
    "move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree open_tree_attr perf_event_open pidfd_getfd pivot_root "
    "process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key setdomainname sethostname setns "
    "settimeofday swapoff swapon syslog umount2 uselib userfaultfd ustat vhangup".split()
)

_SHARED_OBJECTS = tuple(
    "mq_open mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmget".split()
)
"""Objects between processes, where there is no namespace for them."""

_ATTRIBUTES = tuple(
    "chmod chown fchmod fchmodat fchmodat2 fchown fchownat file_setattr fremovexattr fsetxattr futimesat lchown lremovexattr lsetxattr "
    "removexattr removexattrat setxattr setxattrat utime utimensat utimes".split()
)
"""Changes of a file that Landlock does not rule."""


def make_filter(profile: Profile, machine: str, *, namespaces: bool, attributes: bool) -> bytes:
    """`namespaces`: shared objects have one of their own. `attributes`: whether modes, owners and times may be changed."""
    return _make_filter(machine, profile.network == "off", namespaces, attributes)


@functools.lru_cache(maxsize=16)
def _make_filter(machine: str, closes_network: bool, namespaces: bool, attributes: bool) -> bytes:
    closed = [*_CLOSED, *(() if namespaces else _SHARED_OBJECTS), *(() if attributes else _ATTRIBUTES)]
    program = _Program(machine)
    program.refuse_other_modes()
    for name in _MISSING:
        program.close(name, errno.ENOSYS)
    for name in closed:
        program.close(name, errno.EPERM)
    program.close_flags("clone", 0, _NEW_NAMESPACES)
    program.close_flags("unshare", 0, _NEW_NAMESPACES | _NEW_TIME)
    program.require("prlimit64", 0, (0,))
    program.keep_limits("prlimit64", 1, 2)
    program.keep_limits("setrlimit", 0, 1)
    requests = [TIOCSTI, TIOCLINUX, TIOCCONS]
    requests += [] if attributes else [_FS_SETFLAGS, _FS_SETXATTR, _FS_SETVERSION]
    program.close_values("ioctl", 1, requests)
    program.sockets("socketpair", {_UNIX: (_STREAM, _SEQPACKET)})
    internet = {} if closes_network else {_INET: (_STREAM, _DGRAM), _INET6: (_STREAM, _DGRAM)}
    program.sockets("socket", internet)
    return program.finish()


class _Program:
    """Instructions one after the other; every part loads what it compares and falls through to the next."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._code: list[bytes] = []

    def _add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        self._code.append(struct.pack("=HBBI", code, yes, no, value))

    def _number(self, name: str) -> int | None:
        return find_number(name, self._machine)

    def refuse_other_modes(self) -> None:
        self._add(_LOAD, _ARCH_AT)
        self._add(_EQUAL, AUDIT_ARCH[self._machine], 1)
        self._add(_RETURN, _ERRNO | errno.ENOSYS)
        self._add(_LOAD, _NUMBER_AT)
        self._add(_GREATER, NEWEST, 0, 1)
        self._add(_RETURN, _ERRNO | errno.ENOSYS)

    def close(self, name: str, number: int) -> None:
        """The number of the call is loaded here and in what follows `refuse_other_modes`."""
        call = self._number(name)
        if call is not None:
            self._add(_EQUAL, call, 0, 1)
            self._add(_RETURN, _ERRNO | number)

    def _with(self, name: str, body: list[tuple[int, int, int, int]]) -> None:
        """`body` for that call alone; the number is loaded again after it."""
        call = self._number(name)
        if call is None:
            return
        self._add(_EQUAL, call, 0, len(body) + 1)
        for instruction in body:
            self._add(*instruction)
        self._add(_LOAD, _NUMBER_AT)

    def close_flags(self, name: str, argument: int, flags: int) -> None:
        low = (_LOAD, _ARGUMENTS_AT + 8 * argument, 0, 0)
        self._with(name, [low, (_SET, flags, 0, 1), (_RETURN, _ERRNO | errno.EPERM, 0, 0)])

    def close_values(self, name: str, argument: int, values: list[int]) -> None:
        body = [(_LOAD, _ARGUMENTS_AT + 8 * argument, 0, 0)]
        for value in values:
            body += [(_EQUAL, value, 0, 1), (_RETURN, _ERRNO | errno.EPERM, 0, 0)]
        self._with(name, body)

    def require(self, name: str, argument: int, values: tuple[int, ...]) -> None:
        body = [(_LOAD, _ARGUMENTS_AT + 8 * argument, 0, 0)]
        body += [(_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)]
        self._with(name, [*body, (_RETURN, _ERRNO | errno.EPERM, 0, 0)])

    def keep_limits(self, name: str, resource_at: int, new_at: int) -> None:
        """The limits that carry the keeper's mark stay as they are. Asking for one changes nothing: then there is no new value."""
        refusal = (_RETURN, _ERRNO | errno.EPERM, 0, 0)
        asks = [(_LOAD, _ARGUMENTS_AT + 8 * new_at + half, 0, 0) for half in (0, 4)]
        body = [(_LOAD, _ARGUMENTS_AT + 8 * resource_at, 0, 0)]
        body += [(_EQUAL, _LIMITS[0], 1, 0), (_EQUAL, _LIMITS[1], 0, 5)]
        body += [asks[0], (_EQUAL, 0, 0, 2), asks[1], (_EQUAL, 0, 1, 0), refusal]
        self._with(name, body)

    def sockets(self, name: str, allowed: Mapping[int, tuple[int, ...]]) -> None:
        """Only these families with these types."""
        body: list[tuple[int, int, int, int]] = [(_LOAD, _ARGUMENTS_AT, 0, 0)]
        refusal = (_RETURN, _ERRNO | errno.EACCES, 0, 0)
        for family, types in allowed.items():
            part = [(_LOAD, _ARGUMENTS_AT + 8, 0, 0), (_AND, _TYPE_MASK, 0, 0)]
            part += [(_EQUAL, kind, len(types) - index, 0) for index, kind in enumerate(types)]
            part += [refusal, (_RETURN, _ALLOW, 0, 0)]
            body += [(_EQUAL, family, 0, len(part)), *part]
        self._with(name, [*body, refusal])

    def finish(self) -> bytes:
        self._add(_RETURN, _ALLOW)
        return b"".join(self._code)
