from __future__ import annotations

from wsh.cli.declare import Argument, command, echo, json_option
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("kill", json_option, Argument("sessions", many=True, complete="session"))
def kill(as_json: bool, sessions: tuple[str, ...]) -> int:
    """End SESSIONS with all their processes. Works without a server too, through the keeper."""
    left: dict[str, list[int]] = {}
    for name in sessions:
        try:
            told = call("DELETE", session_path(name), start=False, doing="ending")
            if told:
                left[name] = told["survivors"]
        except Exception as problem:
            if getattr(problem, "code", "") != "server_gone":
                raise
            from wsh.cli.keeper import kill_session

            kill_session(name)
    if as_json:
        print_json({"killed": [name for name in sessions if name not in left], **({"survivors": left} if left else {})})
    for name, pids in left.items():
        echo(
            f"wsh: these processes of {name} could not be killed: {', '.join(map(str, pids))}.",
            err=True,
        )
    return 1 if left else 0
