"""From a program's name to the file that will be executed."""

from __future__ import annotations

import os
from collections.abc import Mapping

from wsh.wire.error import InvalidEnvironment, ProgramNotFound

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_program(name: str, env: Mapping[str, str], cwd: str) -> str:
    """The absolute path of `name`, looked up once as a shell would: in PATH, or relative to `cwd` if it has a slash."""
    if not name or "\0" in name:
        raise ProgramNotFound(name)
    if "/" in name:
        candidates = [os.path.join(cwd, name)]
    else:
        folders = env.get("PATH", _DEFAULT_PATH).split(os.pathsep)
        candidates = [os.path.join(cwd, folder, name) for folder in folders]
    for candidate in candidates:
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.normpath(candidate) if "/../" not in candidate else candidate
    raise ProgramNotFound(name)


def check_env(env: Mapping[str, str]) -> dict[str, str]:
    """`env` as the kernel takes it, or InvalidEnvironment naming the first bad variable."""
    checked: dict[str, str] = {}
    items: list[tuple[object, object]] = list(env.items())
    for key, value in items:
        if not isinstance(key, str) or not key or "=" in key or "\0" in key:
            raise InvalidEnvironment(key)
        if not isinstance(value, str) or "\0" in value:
            raise InvalidEnvironment(key)
        checked[key] = value
    return checked
