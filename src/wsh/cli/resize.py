from __future__ import annotations

from wsh.cli.declare import Argument, command, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command("resize", json_option, session_argument, Argument("rows", kind=int), Argument("cols", kind=int))
def resize(as_json: bool, session: str, rows: int, cols: int) -> None:
    """Give SESSION a size of ROWS and COLS."""
    info = call("POST", session_path(session, "/resize"), json_body={"rows": rows, "cols": cols})
    if as_json:
        print_json(info)
