"""From a decided argv to what is executed: the very file, the very folder, a small environment.

The program is looked up once; its path and inode go along, so that the one who executes can tell that it is still the
same. The folder is held by a descriptor. Nothing of the server's environment is passed on but what is named here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wsh.git.guard import Unguarded, guard
from wsh.policy.execute.toolchain import ENVIRONMENT, asks_version, find_selector
from wsh.wire.error import CwdNotFound, InvalidEnvironment, ProgramNotFound, Refused

_PASSED_ON = frozenset("HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME".split())
_SET: Mapping[str, str] = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "NO_COLOR": "1", "SHELL": "/bin/sh"}
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def minimal_environment(base: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """What a headless command gets: a few variables of `base` (the server's), then `wanted` (allowed by policy).

    PATH loses its relative and empty entries, which would let a folder bring its own programs.
    """
    env = {key: value for key, value in base.items() if key in _PASSED_ON or key.startswith("LC_")}
    env.update(_SET)
    folders = [folder for folder in base.get("PATH", _DEFAULT_PATH).split(os.pathsep) if os.path.isabs(folder)]
    env["PATH"] = os.pathsep.join(folders) or _DEFAULT_PATH
    for key, value in wanted.items():
        if not key or "=" in key or "\0" in key or "\0" in value:
            raise InvalidEnvironment(key)
        env[key] = value
    return env


@dataclass
class Launch:
    """Everything to execute one argv. Owns `cwd_fd`: call `close`, or use it as a context manager."""

    argv: tuple[str, ...]
    path: str
    identity: tuple[int, int]
    cwd: str
    cwd_fd: int
    env: dict[str, str]

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.cwd_fd >= 0:
            os.close(self.cwd_fd)
            self.cwd_fd = -1


def is_git(argv: Sequence[str]) -> bool:
    return os.path.basename(argv[0]) == "git"


def prepare(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    *,
    git_settings: bytes = b"",
    git_index: bytes | None = None,
) -> Launch:
    """Hold the program and the folder. `cwd` is canonical.

    What git answers to the questions of `wsh.git.guard` comes along, unless `argv` is one of them. Raises
    ProgramNotFound, CwdNotFound, or Refused where git would run what a repository names.
    """
    fd = _hold_folder(cwd)
    try:
        path, identity = find_program(argv[0], env.get("PATH", _DEFAULT_PATH), cwd)
        if is_git(argv):
            guarded = guard(argv, git_settings, git_index)
            return Launch(guarded.argv, path, identity, cwd, fd, {**env, **guarded.env})
        if asks_version(argv):
            selector = find_selector(path, cwd)
            if selector is not None:
                raise Refused(f"{selector} names a path from which {argv[0]} would be run.", cwd=cwd)
            return Launch(tuple(argv), path, identity, cwd, fd, {**env, **ENVIRONMENT})
        return Launch(tuple(argv), path, identity, cwd, fd, dict(env))
    except Unguarded as problem:
        os.close(fd)
        raise Refused(f"git is not run there: {problem}.", cwd=cwd) from None
    except BaseException:
        os.close(fd)
        raise


def _hold_folder(cwd: str) -> int:
    try:
        fd = os.open(cwd, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError):
        raise CwdNotFound(cwd) from None
    try:
        # A link that was put into the way since the path was made canonical leads elsewhere.
        if os.readlink(f"/proc/self/fd/{fd}") != cwd:
            raise CwdNotFound(cwd)
    except OSError:
        os.close(fd)
        raise CwdNotFound(cwd) from None
    except CwdNotFound:
        os.close(fd)
        raise
    return fd


def find_program(name: str, path: str, cwd: str) -> tuple[str, tuple[int, int]]:
    """The file that `name` means, and its identity; PATH entries that are not absolute are not looked at."""
    if not name or "\0" in name:
        raise ProgramNotFound(name)
    if "/" in name:
        candidates = [os.path.join(cwd, name)]
    else:
        candidates = [os.path.join(folder, name) for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    for candidate in candidates:
        try:
            info = os.stat(candidate)
        except OSError:
            continue
        if stat.S_ISREG(info.st_mode) and os.access(candidate, os.X_OK):
            return candidate, (info.st_dev, info.st_ino)
    raise ProgramNotFound(name)
