"""What holds a child in, put on between fork and exec: signals it ignores, descriptors it gets, limits, Landlock, seccomp.

The server made the rules: a Landlock ruleset arrives as a descriptor, a seccomp program as bytes. Everything is unpacked before the fork;
after it there are system calls only. A step that fails raises, and the program is not executed.
"""

from __future__ import annotations

import binascii
import ctypes
import os
import resource
import signal
import struct

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject


_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_CLEAR_ALL = 4
_MODE_FILTER = 2
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_PATH_BENEATH = 1
_CLOSE_RANGE = 436
_CLOSE_ON_EXEC = 4
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_V3 = 0x20080522
_MOST_CAPABILITIES = 64
_FIRST_FREE_FD = 3

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno() or 1, "refused")


def _prctl(option: int, first: int = 0, second: int = 0) -> int:
    zero = ctypes.c_ulong(0)
    return int(_libc.prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second), zero, zero))


class Confinement:
    """Made in the keeper. `hold` and `apply` run in the child, `apply` right before the exec."""

    __slots__ = (
        "_capset",
        "_filter",
        "_held",
        "_ignored",
        "_limits",
        "_program",
        "_ruleset",
        "_terminal_access",
        "wrapped",
    )

    def __init__(self, asked: JsonObject, fds: list[int]) -> None:
        """`fds` are the ruleset, if there is one, and what is held, in the order of their numbers in `asked`."""
        self.wrapped = bool(asked["wrapped"])
        rest = list(fds)
        self._ruleset = rest.pop(0) if asked["ruleset"] else -1
        self._terminal_access = int(asked["terminal_access"])
        numbers = [int(number) for number in asked["held"]]
        self._held = list(zip(numbers, rest, strict=True))
        self._ignored = [int(number) for number in asked["ignored"]]
        self._limits = [(int(which), int(value)) for which, value in asked["limits"]]
        program = binascii.a2b_base64(asked["filter"])
        self._filter = ctypes.create_string_buffer(program, len(program)) if program else None
        self._program: object = None
        if self._filter is not None:
            # struct sock_fprog: the number of instructions, then their address
            address = ctypes.addressof(self._filter)
            self._program = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, address))
        self._capset = _CAPSET.get(os.uname().machine, 0)

    def list_fds(self) -> list[int]:
        return [fd for _, fd in self._held] + ([self._ruleset] if self._ruleset >= 0 else [])

    def move_fds(self, moved: dict[int, int]) -> None:
        """The descriptors have other numbers now."""
        self._held = [(number, moved[fd]) for number, fd in self._held]
        if self._ruleset >= 0:
            self._ruleset = moved[self._ruleset]

    def hold(self) -> None:
        """Nothing of the keeper's stays open in the program; what it is to have gets its number. Before other descriptors are placed."""
        most = ctypes.c_uint(0xFFFFFFFF)
        _syscall(_CLOSE_RANGE, ctypes.c_uint(_FIRST_FREE_FD), most, ctypes.c_uint(_CLOSE_ON_EXEC))
        for number, fd in self._held:
            os.dup2(fd, number)

    def apply(self, terminal: int | None) -> None:
        """The point of no return. `terminal` is the child's own, which its rules are to allow."""
        for number in self._ignored:
            signal.signal(number, signal.SIG_IGN)
        for which, value in self._limits:
            hard = resource.getrlimit(which)[1]
            if hard != resource.RLIM_INFINITY:
                value = min(value, hard)
            resource.setrlimit(which, (value, value))
        if self._ruleset < 0 and self._program is None:
            return
        self._drop_capabilities()
        _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1))
        if self._ruleset >= 0:
            if terminal is not None and self._terminal_access:
                rule = ctypes.create_string_buffer(struct.pack("=Qi", self._terminal_access, terminal))
                _check(_syscall(_LANDLOCK_ADD_RULE, self._ruleset, _PATH_BENEATH, rule, 0))
            _check(_syscall(_LANDLOCK_RESTRICT_SELF, self._ruleset, 0))
        if self._program is not None:
            _check(_libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, self._program, 0, 0))

    def _drop_capabilities(self) -> None:
        """None is left, and without the bounding set root gets none back at the exec either. An ordinary user has none to drop."""
        _prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
        for number in range(_MOST_CAPABILITIES):
            if _prctl(_PR_CAPBSET_DROP, number) != 0:
                break
        if self._capset:
            header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITIES_V3, 0))
            _check(_syscall(self._capset, header, ctypes.create_string_buffer(24)))
        elif os.geteuid() == 0:
            raise OSError(38, "capabilities cannot be dropped on this processor")
