"""The Landlock backend: a ruleset of the kernel's, filled here and handed on as a descriptor, beside a seccomp program.

Needs no privilege and works in containers. It rules opening, making, moving and removing files; it cannot except a path below a writable
root, and does not rule modes, owners, times and extended attributes: where nothing is writable the seccomp program closes those calls.
"""

from __future__ import annotations

import ctypes
import functools
import os
import stat
import struct
import time
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from pathlib import PurePath

from wsh.sandbox.claim import Claim
from wsh.sandbox.profile import Profile, contains
from wsh.sandbox.root import SYSTEM, list_secrets
from wsh.sandbox.syscall import AUDIT_ARCH, machine

LEAST_ABI = 3
"""Before that, truncating a file was not ruled."""
_NETWORK_ABI, _DEVICE_ABI, _SCOPE_ABI = 4, 5, 6

_CREATE, _ADD_RULE = 444, 445
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_ABI_3 = (1 << 15) - 1
_DEVICE_NODES = 1 << 6 | 1 << 11
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_WRITING = _ALL_ABI_3 & ~_DEVICE_NODES
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_BIND_AND_CONNECT = 3
_SCOPES = 3  # abstract unix sockets, signals

_LOOK = os.O_PATH | os.O_CLOEXEC
_SETTLED_NS = 2_000_000_000
"""Clocks of file systems are coarse: within this, two changes of a folder may bear the same time."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def read_abi() -> int:
    """The version that the running kernel offers; 0 without Landlock."""
    found = _libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(0, int(found))


def find_missing() -> str | None:
    """What this machine lacks for the backend; None if it can be used."""
    if machine() not in AUDIT_ARCH:
        return f"seccomp programs are written for {' and '.join(AUDIT_ARCH)}, not for {machine()}"
    abi = read_abi()
    if abi == 0:
        return "the kernel has no Landlock (it needs Linux 6.2 with `landlock` among its security modules, CONFIG_LSM or lsm=)"
    if abi < LEAST_ABI:
        return f"the kernel's Landlock has ABI {abi}; at least {LEAST_ABI} is needed (Linux 6.2)"
    return None


def list_claims(profile: Profile, abi: int) -> frozenset[Claim]:
    """What holds for that profile. Attributes hold where nothing is writable, because all calls that change them are closed then."""
    claims = {Claim.WRITES, Claim.READS, Claim.NETWORK, Claim.SOCKETS, Claim.OBJECTS, Claim.TERMINAL, Claim.PRIVILEGES}
    claims.add(Claim.FILE_SIZE)
    if not profile.writes:
        claims.add(Claim.ATTRIBUTES)
    if abi >= _SCOPE_ABI:
        claims.add(Claim.SIGNALS)
    return frozenset(claims)


def terminal_access(abi: int) -> int:
    """For the session's own terminal."""
    return _DEVICE & _handled(abi)


def _handled(abi: int) -> int:
    return _ALL_ABI_3 | (_IOCTL_DEV if abi >= _DEVICE_ABI else 0)


def begin_ruleset(closes_network: bool, abi: int) -> int:
    """A new ruleset's descriptor, with rules for the system's folders without their secrets, and the usual devices. Raises OSError."""
    scoped = _SCOPES if abi >= _SCOPE_ABI else 0
    network = _BIND_AND_CONNECT if abi >= _NETWORK_ABI and closes_network else 0
    attributes = struct.pack("=QQQ", _handled(abi), network, scoped)
    size = 24 if abi >= _SCOPE_ABI else 16 if abi >= _NETWORK_ABI else 8
    ruleset = int(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "the kernel makes no Landlock ruleset")
    try:
        rules = _Rules(ruleset, abi)
        secrets = tuple(list_secrets())
        above = _find_above(secrets)
        for path in SYSTEM:
            rules.allow_around(path, frozenset(secrets), above)
        rules.allow("/proc", _READ_FILE | _READ_DIR)
        for path in _DEVICES:
            rules.allow(path, _DEVICE)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def extend_ruleset(ruleset: int, abi: int, *, readable: Iterable[str], folder: int, writable: Iterable[int]) -> None:
    """Allow a session's own: `readable` are paths, `folder` and `writable` open descriptors of folders. Raises OSError."""
    rules = _Rules(ruleset, abi)
    for path in readable:
        rules.allow(path, _READING)
    rules.add(folder, _READING)
    for fd in writable:
        rules.add(fd, _WRITING)


@dataclass(frozen=True)
class SystemState:
    """What the rules for the system's folders stand on; another state wants other rules."""

    secrets: tuple[str, ...]
    roots: tuple[tuple[int, int] | None, ...]
    above: tuple[tuple[int, int, int], ...]
    is_settled: bool = field(compare=False)
    """Whether the newest change lies long enough back that a further one would be seen."""


def read_state() -> SystemState:
    secrets = tuple(list_secrets())
    listed = (path for path in sorted(_find_above(secrets)) if any(contains(root, path) for root in SYSTEM))
    above = tuple(_read_folder_state(path) for path in listed)
    newest = max((state[2] for state in above), default=0)
    roots = tuple(_read_identity(path) for path in SYSTEM)
    return SystemState(secrets, roots, above, abs(time.time_ns() - newest) > _SETTLED_NS)


@functools.lru_cache(maxsize=8)
def _find_above(secrets: tuple[str, ...]) -> frozenset[str]:
    return frozenset(str(parent) for secret in secrets for parent in PurePath(secret).parents)


def _read_identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read_folder_state(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_dev, found.st_ino, found.st_mtime_ns


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


class _Rules:
    """Made for many rules in a short time: the numbers of a call are converted once."""

    def __init__(self, ruleset: int, abi: int) -> None:
        self._mask = _handled(abi)
        self._rule = _Rule()
        self._call = (
            ctypes.c_long(_ADD_RULE),
            ctypes.c_int(ruleset),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(self._rule),
            ctypes.c_uint32(0),
        )

    def allow(self, path: str, access: int, is_folder: bool | None = None) -> None:
        """A path that is not there gets no rule."""
        try:
            fd = os.open(path, _LOOK)
        except OSError:
            return
        try:
            self.add(fd, access, is_folder)
        finally:
            os.close(fd)

    def allow_around(self, path: str, secrets: Set[str], above: Set[str], is_folder: bool | None = None) -> None:
        """Reading, without the secrets: the folders above one may be listed, and everything else in them is allowed by name."""
        if path in secrets:
            return
        if path not in above:
            self.allow(path, _READING, is_folder)
            return
        self.allow(path, _READ_DIR, True)
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_symlink():  # what it points to has a rule of its own, or none
                    self.allow_around(entry.path, secrets, above, entry.is_dir(follow_symlinks=False))

    def add(self, fd: int, access: int, is_folder: bool | None = None) -> None:
        if not (stat.S_ISDIR(os.fstat(fd).st_mode) if is_folder is None else is_folder):
            access &= _FOR_FILES
        self._rule.access, self._rule.fd = access & self._mask, fd
        if _libc.syscall(*self._call) != 0:
            raise OSError(ctypes.get_errno(), "the kernel takes no Landlock rule")
