from __future__ import annotations

from wsh.cli.declare import Option, command, echo, json_option, session_argument
from wsh.cli.output import plain_lines, print_json
from wsh.cli.request import call, session_path
from wsh.cli.screen import styled_option


@command(
    "scrollback",
    Option("--limit", kind=int, default=100, show_default=True, help="How many lines."),
    Option("--offset", kind=int, default=0, show_default=True, help="Lines to leave out at the end."),
    Option("--since-line", kind=int, help="Only lines from this absolute number on."),
    styled_option,
    json_option,
    session_argument,
)
def scrollback(limit: int, offset: int, since_line: int | None, styled: bool, as_json: bool, session: str) -> None:
    """Show the last lines of SESSION, the visible screen included."""
    query = {"offset": offset, "limit": limit, "since_line": since_line, "format": "styled" if styled else "plain"}
    page = call("GET", session_path(session, "/scrollback"), query=query, start=False)
    if as_json:
        print_json(page)
    else:
        echo(plain_lines(page))
