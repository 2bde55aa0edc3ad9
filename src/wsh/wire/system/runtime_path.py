"""Where the sockets and folders are, as texts. Imports nothing of weight: a command asks this before it does anything else."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_SOCKET = 107
"""Bytes that the kernel takes for the path of a socket."""
LOGIN_FOLDERS = "/run/user"
"""Where systemd makes a runtime folder for each user who is logged in."""


def server_name(environ: Mapping[str, str]) -> str:
    return environ.get("WSH_SERVER") or "default"


def runtime_folder(environ: Mapping[str, str], server: str) -> str:
    """The folder of the sockets of `server`: below XDG_RUNTIME_DIR, or the user's folder in /run, or the one for temporary files.

    A short stand-in is used where the sockets would have paths that the kernel does not take.
    """
    base = environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(base if base and os.path.isdir(base) else _usual_base(), "wsh")
    if len(os.fsencode(folder)) + len(os.fsencode(f"/{server}.keeper.sock")) <= _LONGEST_SOCKET:
        return folder
    from hashlib import sha256

    return temporary(f"wsh-{os.getuid()}-{sha256(os.fsencode(folder)).hexdigest()[:12]}")


def _usual_base() -> str:
    """What XDG_RUNTIME_DIR says at a login. MCP hosts start `wsh mcp` without the variable, and mean the same server."""
    base = os.path.join(LOGIN_FOLDERS, str(os.getuid()))
    try:
        is_ours = os.lstat(base).st_uid == os.getuid() and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK)
    except OSError:
        is_ours = False
    return base if is_ours else temporary(f"wsh-{os.getuid()}")


def state_folder(environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("XDG_STATE_HOME") or os.path.join(_home(environ), ".local", "state"), "wsh")


def config_folder(environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(_home(environ), ".config"), "wsh")


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def server_socket(environ: Mapping[str, str]) -> str:
    server = server_name(environ)
    return os.path.join(runtime_folder(environ, server), f"{server}.sock")


def temporary(name: str) -> str:
    """`name` in the folder for temporary files: the one that `tempfile` finds too, which takes long to import."""
    for folder in (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp", "/usr/tmp"):
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.join(os.path.abspath(folder), name)
    return os.path.abspath(name)
