from __future__ import annotations

from wsh.cli.declare import Argument, command, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("keys", json_option, session_argument, Argument("key", many=True))
def keys(as_json: bool, session: str, key: tuple[str, ...]) -> None:
    """Press keys in SESSION by name, such as: ctrl+c, enter, shift+tab, alt+left, f5."""
    call("POST", session_path(session, "/keys"), json_body={"keys": list(key)})
    if as_json:
        print_json({"session": session, "keys": list(key)})
