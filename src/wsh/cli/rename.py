from __future__ import annotations

from wsh.cli.declare import Argument, command, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("rename", json_option, session_argument, Argument("new_name"))
def rename(as_json: bool, session: str, new_name: str) -> None:
    """Call SESSION by NEW_NAME from now on."""
    info = call("PATCH", session_path(session), json_body={"name": new_name})
    if as_json:
        print_json(info)
