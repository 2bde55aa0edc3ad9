"""`wsh` alone: a shell like before, but shared."""

from __future__ import annotations

import os

from wsh.cli.new import command_line
from wsh.cli.request import call
from wsh.client import tty
from wsh.wire.error import InvalidRequest


def open_here(command: tuple[str, ...] = (), *, status: bool = True) -> str:
    """A new session in this directory with this environment and this terminal's size; its name."""
    rows, cols = tty.size()
    environ = {key: value for key, value in os.environ.items() if not key.startswith("WSH_")}
    body = {"rows": max(1, rows - 1) if status else rows, "cols": cols, "cwd": os.getcwd(), "env": environ}
    line = command_line(command)
    made = call("POST", "/sessions", json_body=body if line is None else body | {"command": line}, doing="starting")
    return str(made["name"])


def start() -> int:
    """Open a session here and show it; the exit status of its program, or 0 when detached."""
    from wsh.cli.attach import show

    if os.environ.get("WSH_SESSION"):
        raise InvalidRequest(
            f"This is session {os.environ['WSH_SESSION']!r} already; a session inside of itself helps nobody.",
            hint="Create another with: wsh new. Detach from this one with Ctrl+\\ twice.",
        )
    if not tty.is_terminal():
        raise InvalidRequest(
            "There is no terminal to show a session in.", hint="wsh --help lists what works without one."
        )
    return show(open_here())
