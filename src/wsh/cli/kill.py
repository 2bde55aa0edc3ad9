from __future__ import annotations

from wsh.cli.declare import Argument, command, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("kill", json_option, Argument("sessions", many=True, complete="session"))
def kill(as_json: bool, sessions: tuple[str, ...]) -> None:
    """End SESSIONS with all their processes."""
    for name in sessions:
        call("DELETE", session_path(name), doing="ending")
    if as_json:
        print_json({"killed": list(sessions)})
