from __future__ import annotations

from wsh.cli.declare import Argument, command, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("kill", json_option, Argument("sessions", many=True, complete="session"))
def kill(as_json: bool, sessions: tuple[str, ...]) -> None:
    """End SESSIONS with all their processes. Works without a server too, through the keeper."""
    for name in sessions:
        try:
            call("DELETE", session_path(name), start=False, doing="ending")
        except Exception as problem:
            if getattr(problem, "code", "") != "server_gone":
                raise
            from wsh.cli.keeper import kill_session

            kill_session(name)
    if as_json:
        print_json({"killed": list(sessions)})
