from __future__ import annotations

import os

from wsh.cli.attach import show
from wsh.cli.declare import Argument, Option, WrongUse, command, echo, json_option
from wsh.cli.export import fetch, save
from wsh.cli.output import NOT_KNOWN, print_json
from wsh.cli.request import call, session_path
from wsh.cli.start import open_here

# The server cuts this to the limit of its own.
_WAIT_MS = 24 * 3600 * 1000


@command(
    "record",
    Option("--output", "-o", metavar="FILE", required=True, help="The asciicast file to write."),
    Option("--v3", kind=bool, help="Write version 3 of the format instead of 2."),
    json_option,
    Argument("words", metavar="COMMAND", rest=True, required=False),
)
def record(output: str, v3: bool, as_json: bool, words: tuple[str, ...]) -> int:
    """Run COMMAND, or a shell, in this terminal and write what it prints to a file.

    Without a terminal, as in a pipe or a CI job, COMMAND is recorded without being shown, on a screen of 80 columns and 24 rows; nothing is typed into it.
    Every session is recorded anyway: `wsh export` gives the recording of any of them.
    """
    from wsh.client import tty

    folder = os.path.dirname(os.path.abspath(output))
    if not os.path.isdir(folder):
        raise WrongUse(f"--output: {folder} is not a folder.")
    if os.path.isdir(output):
        raise WrongUse(f"--output: {output} is a folder.")
    is_shown = tty.is_terminal()
    if not is_shown and not words:
        raise WrongUse("Without a terminal nobody can type into a shell: name a COMMAND to record.")
    name = open_here(words, status=False)
    status = show(name, status=False) if is_shown else _wait_for_end(name)
    format = "asciicast-v3" if v3 else "asciicast-v2"
    data = fetch(name, format, None, "dark")
    save(output, data)
    if as_json:
        facts = {"session": name, "format": format, "bytes": len(data), "file": output, "exit_code": status}
        print_json(facts)
    else:
        echo(f"written to {output}", err=True)
    return status


def _wait_for_end(name: str) -> int:
    """The exit status of the session's program, and 7 where nobody can tell it. Ctrl+C is passed on to it, as a terminal would."""
    from wsh.wire.error import WaitTimeout

    query = {"exit": True, "max_wait_ms": _WAIT_MS, "format": "plain"}
    while True:
        try:
            call("GET", session_path(name, "/idle"), query=query, doing="recording")
            status = call("GET", session_path(name), doing="")["exit_code"]
            return NOT_KNOWN if status is None else int(status)
        except WaitTimeout:
            continue  # one request has a limit of its own (server.max_wait_ms)
        except (KeyboardInterrupt, SystemExit):  # `call` raises SystemExit at Ctrl+C
            call("POST", session_path(name, "/keys"), json_body={"keys": ["ctrl+c"]}, doing="")
