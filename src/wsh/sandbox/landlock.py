"""The Landlock backend: a ruleset of the kernel's, filled here and handed on as a descriptor, beside a seccomp program.

Needs no privilege and works in containers. It rules opening, making, moving and removing files; it cannot except a path below a writable
root, and does not rule modes, owners, times and extended attributes: where nothing is writable the seccomp program closes those calls.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Set
from pathlib import PurePath

from wsh.sandbox.claim import Claim
from wsh.sandbox.profile import Profile
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


def make_ruleset(profile: Profile, abi: int, *, readable: Iterable[str], writable: Iterable[int]) -> int:
    """A new ruleset's descriptor. `readable` are paths beside the system's, `writable` open descriptors of folders. Raises OSError."""
    scoped = _SCOPES if abi >= _SCOPE_ABI else 0
    network = _BIND_AND_CONNECT if abi >= _NETWORK_ABI and profile.network == "off" else 0
    attributes = struct.pack("=QQQ", _handled(abi), network, scoped)
    size = 24 if abi >= _SCOPE_ABI else 16 if abi >= _NETWORK_ABI else 8
    ruleset = int(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "the kernel makes no Landlock ruleset")
    try:
        rules = _Rules(ruleset, abi)
        secrets = set(list_secrets())
        above = {str(parent) for secret in secrets for parent in PurePath(secret).parents}
        for path in SYSTEM:
            rules.allow_around(path, secrets, above)
        for path in readable:
            rules.allow(path, _READING)
        rules.allow("/proc", _READ_FILE | _READ_DIR)
        for path in _DEVICES:
            rules.allow(path, _DEVICE)
        for fd in writable:
            rules.add(fd, _WRITING)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


class _Rules:
    def __init__(self, ruleset: int, abi: int) -> None:
        self._ruleset = ctypes.c_int(ruleset)
        self._mask = _handled(abi)

    def allow(self, path: str, access: int, is_folder: bool | None = None) -> None:
        """A path that is not there gets no rule."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
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
        rule = struct.pack("=Qi", access & self._mask, fd)
        if _libc.syscall(_ADD_RULE, self._ruleset, _PATH_BENEATH, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), "the kernel takes no Landlock rule")
