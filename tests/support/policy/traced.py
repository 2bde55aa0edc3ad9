"""Run many argument lists under one strace, and say which of them did more than read.

`traced_child.py` is the part that strace watches: it starts one command after the other and marks each in the trace by
removing a file that is not there. Whatever follows a mark belongs to that case.
"""

from __future__ import annotations

import marshal
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.policy import traced_child
from tests.support.policy.traced_child import MARK, NOBODY

__all__ = ["NOBODY", "Case", "Deed", "can_trace", "named", "trace"]

_MARKED = re.compile(rf'^\d+ +unlink\("{MARK}(\w+)"')
_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WATCHED = (
    "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,"
    "chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,truncate,ftruncate,fallocate,utime,utimes,utimensat,futimesat,setxattr,lsetxattr,fsetxattr,"
    "removexattr,lremovexattr,fremovexattr,execve,execveat,connect,bind,listen,sendto,sendmsg,sendmmsg,kill,tgkill,tkill,ptrace,mount,umount2,"
    "settimeofday,clock_settime,adjtimex,clock_adjtime,sethostname,setdomainname,setrlimit,syslog,reboot,sync,syncfs,setpriority,chroot"
)
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
# Nothing is changed by writing there.
_NOWHERE = frozenset({"/dev/null", "/dev/tty"})
# Asking who a user is; asking which addresses a name has; counting processors.
_ASKING = re.compile(r'sun_path="/(?:var/)?run/(?:nscd/socket|systemd/userdb/)|AF_NETLINK|AF_UNSPEC')


@dataclass(frozen=True)
class Case:
    argv: tuple[str, ...]
    path: str
    cwd: str
    env: Mapping[str, str]


@dataclass(frozen=True)
class Deed:
    """What a case did beyond reading."""

    argv: tuple[str, ...]
    what: str


Pardon = Callable[[Case, str, str], bool]
"""Whether a call (its name and its arguments) is fine for that case all the same."""


def can_trace() -> str | None:
    """Why strace cannot be used here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "true"], capture_output=True)
    return (
        None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.decode(errors='replace')[:200]}"
    )


def trace(cases: Sequence[Case], folder: Path, pardon: Pardon) -> list[Deed]:
    """Run `cases` one after the other; `folder` is for what the trace needs itself."""
    listed, log = folder / "cases", folder / "trace"
    listed.write_bytes(marshal.dumps([(case.argv, case.path, case.cwd, dict(case.env)) for case in cases]))
    faster = ["--seccomp-bpf"] if _has_filter() else []
    done = subprocess.run(
        [
            *("strace", "-f", *faster, "-qq", "-s", "200", "-e", f"trace={_WATCHED}", "-e", "signal=none"),
            *("-o", str(log), sys.executable, "-S", "-E", traced_child.__file__, str(listed), str(folder / "output")),
        ],
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    deeds, seen = _read(log, cases, pardon)
    assert seen == len(cases), f"{seen} of {len(cases)} cases are in the trace"
    return deeds


@cache
def _has_filter() -> bool:
    told = subprocess.run(["strace", "--help"], capture_output=True, text=True)
    return "--seccomp-bpf" in told.stdout


def _read(log: Path, cases: Sequence[Case], pardon: Pardon) -> tuple[list[Deed], int]:
    deeds: list[Deed] = []
    current: Case | None = None
    started, seen = False, 0
    with log.open(errors="replace") as lines:
        for line in lines:
            marked = _MARKED.match(line)
            if marked:
                current = None if marked[1] == "end" else cases[int(marked[1])]
                seen += current is not None
                started = False
                continue
            call = _CALL.match(line)
            if current is None or call is None:
                continue
            name, rest = call[1], call[2]
            if name == "execve" and not started:
                started = True
                continue
            if _is_deed(name, rest) and not pardon(current, name, rest):
                deeds.append(Deed(current.argv, line.strip()[:300]))
    return deeds, seen


def _is_deed(name: str, rest: str) -> bool:
    if name in ("open", "openat", "openat2"):
        return bool(_WRITING.search(rest)) and named(rest) not in _NOWHERE
    if name in ("connect", "bind", "sendto", "sendmsg", "sendmmsg"):
        # A message on a socket that is connected says no address: its connect was looked at.
        return not _ASKING.search(rest) and "sa_family" in rest
    return name != "sync"


def named(rest: str) -> str:
    """The first text among the arguments of a call: its path."""
    found = _TEXT.search(rest)
    return found[1] if found else ""
