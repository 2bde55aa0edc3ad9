from __future__ import annotations

from wsh.cli.declare import Option, command, echo, json_option, session_argument
from wsh.cli.output import plain_lines, print_json
from wsh.cli.request import ANSWER_S, call, session_path

styled_option = Option("--styled", kind=bool, help="With --json: spans with colours and attributes.")


@command("screen", styled_option, json_option, session_argument)
def screen(styled: bool, as_json: bool, session: str) -> None:
    """Show the screen of SESSION."""
    query = {"format": "styled" if styled else "plain"}
    seen = call("GET", session_path(session, "/screen"), query=query, start=False, answer_s=ANSWER_S)
    if as_json:
        print_json(seen)
    else:
        echo(plain_lines(seen).rstrip("\n"))
