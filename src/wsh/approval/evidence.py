"""What a person is shown before they answer, and the fingerprint that ties their answer to exactly that.

Resolved where the command will run, because only there do paths mean what they will mean. The same resolution is made
again right before running; any difference in the binding means that what was approved is no longer what would run.
Blocking file access: call it from a thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsh.approval.escape import escape_argument, escape_text

_MAX_HASHED = 1024 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


class CannotRun(Exception):
    """There is nothing to approve: `code` is program_not_found or cwd_not_found."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Evidence:
    """Facts about one request. `environment` is what the program gets; `env_set` is how it differs from ours."""

    argv: tuple[str, ...]
    cwd: str
    executable: str | None
    executable_sha256: str | None
    env_set: Mapping[str, str]
    env_digest: str
    binding: str
    environment: Mapping[str, str] = field(repr=False)
    sandbox: str | None = None
    """The profile that holds it; None for an open command."""

    @property
    def shown_argv(self) -> tuple[str, ...]:
        """Every argument visibly escaped."""
        return tuple(escape_argument(word) for word in self.argv)

    @property
    def shown_env(self) -> tuple[str, ...]:
        return tuple(f"{escape_text(name)}={escape_argument(value)}" for name, value in sorted(self.env_set.items()))


def resolve(
    argv: Sequence[str],
    cwd: str,
    env_set: Mapping[str, str],
    base: Mapping[str, str],
    session: str,
    sandbox: str | None = None,
    leaves: str | None = None,
) -> Evidence:
    """Evidence for running `argv` in `cwd` with `env_set` over `base`, asked for by `session`.

    `sandbox` is the profile that holds it, `leaves` the one that it asks to leave: a yes to one is none to the other.
    """
    environment = {**base, **env_set}
    real, place = _resolve_cwd(cwd)
    executable = find_executable(argv[0], environment.get("PATH", os.defpath), real)
    digest = _hash_file(executable)
    return _bind(argv, real, place, executable, digest, env_set, environment, session, sandbox, leaves)


def resolve_typing(text: str, terminal_id: str, session: str) -> Evidence:
    """Evidence for typing `text` into a terminal that is already open."""
    return _bind((text,), f"terminal {terminal_id}", "", None, None, {}, {}, session)


def resolve_hidden(text: str, name: str, session: str) -> Evidence:
    """Evidence for an answer at a hidden prompt: `text` describes the prompt and never holds the answer."""
    return _bind((text,), f"session {name}", "", None, None, {}, {}, session)


def resolve_hook(text: str, cwd: str, session: str) -> Evidence:
    """Evidence for a command line that another program would run in `cwd`. Its shell decides which programs that are."""
    real, place = _resolve_cwd(cwd)
    return _bind((text,), real, place, None, None, {}, {}, session)


def _bind(
    argv: Sequence[str],
    cwd: str,
    place: str,
    executable: str | None,
    digest: str | None,
    env_set: Mapping[str, str],
    environment: Mapping[str, str],
    session: str,
    sandbox: str | None = None,
    leaves: str | None = None,
) -> Evidence:
    env_digest = _digest(sorted(environment.items()))
    binding = _digest([list(argv), cwd, place, executable, digest, env_digest, session, sandbox, leaves])
    return Evidence(tuple(argv), cwd, executable, digest, dict(env_set), env_digest, binding, environment, sandbox)


def _digest(value: object) -> str:
    # surrogateescape: an inherited environment may hold bytes that are not UTF-8
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode("ascii")).hexdigest()


def _resolve_cwd(cwd: str) -> tuple[str, str]:
    try:
        real = os.path.realpath(cwd, strict=True)
        info = os.stat(real)
        if not stat.S_ISDIR(info.st_mode) or not os.access(real, os.X_OK):
            raise NotADirectoryError(real)
    except (OSError, ValueError):
        raise CannotRun("cwd_not_found", f"{cwd!r} is not a directory that can be entered here.") from None
    return real, f"{info.st_dev}:{info.st_ino}"


def find_executable(program: str, path: str, cwd: str) -> str:
    """Where `program` is found by the rules of execvp, seen from `cwd`."""
    if "/" in program:
        candidates = [os.path.join(cwd, program)]
    else:
        candidates = [os.path.join(cwd, folder or ".", program) for folder in path.split(os.pathsep)]
    for candidate in candidates:
        try:
            if stat.S_ISREG(os.stat(candidate).st_mode) and os.access(candidate, os.X_OK):
                return os.path.normpath(candidate)
        except (OSError, ValueError):
            continue
    raise CannotRun("program_not_found", f"There is no program {program!r} that can be run here.")


def _hash_file(path: str) -> str:
    """What the file holds; where it cannot be read, or is longer than any program, which file it is. Raises CannotRun."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return _identify(path)
    with open(fd, "rb", buffering=0) as file:
        digest, left = hashlib.sha256(), _MAX_HASHED
        if os.fstat(fd).st_size <= left:
            while piece := file.read(min(_PIECE_BYTES, left)):
                digest.update(piece)
                left -= len(piece)
            if left:
                return digest.hexdigest()
    return _identify(path)


def _identify(path: str) -> str:
    try:
        info = os.stat(path)
    except OSError:
        raise CannotRun("program_not_found", f"The program {path!r} is gone.") from None
    return f"inode:{info.st_dev}:{info.st_ino}:{info.st_mtime_ns}:{info.st_ctime_ns}:{info.st_size}"
