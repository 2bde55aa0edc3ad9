from __future__ import annotations

from wsh.cli.declare import command, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("detach", json_option, session_argument)
def detach(as_json: bool, session: str) -> None:
    """Send every viewer of SESSION away; the session goes on."""
    call("POST", session_path(session, "/detach"), start=False)
    if as_json:
        print_json({"detached": session})
