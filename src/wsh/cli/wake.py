from __future__ import annotations

from wsh.cli.declare import Argument, Option, WrongUse, command, echo, json_option
from wsh.cli.output import print_json, print_table
from wsh.cli.request import call, is_server_there, quote, session_path


@command(
    "wake",
    Option("--when", metavar="OTHER", help="The session whose command has to end."),
    Option("--line", metavar="TEXT", help="What is typed, with Enter."),
    Option("--cancel", metavar="ID", help="Take back a line that has not been typed."),
    json_option,
    Argument("session", required=False, complete="session"),
)
def wake(when: str | None, line: str | None, cancel: str | None, as_json: bool, session: str | None) -> None:
    """Type TEXT into SESSION, once, when a command of OTHER has ended. Without a session: list the lines.

    It is meant for the program that is in front of SESSION now, such as an agent, and waits while somebody types there.
    """
    if cancel is not None:
        if session is not None or when is not None or line is not None:
            raise WrongUse("--cancel takes an ID and nothing else.")
        found = call("DELETE", f"/wakes/{quote(cancel)}", start=False)
        said = f"Taken back: {found['line']}"
    elif session is not None:
        if when is None or line is None:
            raise WrongUse("Say --when OTHER and --line TEXT.")
        body = {"when": when, "line": line}
        found = call("POST", f"{session_path(session)}/wake", json_body=body, start=False)
        said = f"{found['id']}: typed into {found['session']} when a command of {found['when']} ends"
    elif when is not None or line is not None:
        raise WrongUse("Say which SESSION is to be woken.")
    else:
        _list(as_json)
        return
    if as_json:
        print_json(found)
    else:
        echo(said)


def _list(as_json: bool) -> None:
    found = call("GET", "/wakes", start=False) if is_server_there() else {"wakes": []}
    if as_json:
        print_json(found)
        return
    rows = [(one["state"], one["session"], one["when"], one["line"], one["why"], one["id"]) for one in found["wakes"]]
    print_table(("state", "session", "when", "line", "why", "id"), rows, empty="No line waits to be typed.")
