from __future__ import annotations

from wsh.cli.declare import Option, command, echo, json_option, session_argument
from wsh.cli.output import print_json
from wsh.cli.request import call, session_path


@command(
    "wait",
    Option("--quiet-ms", kind=int, help="Silent for so long; default 500 if no other condition is named."),
    Option("--text", help="This text is printed."),
    Option("--regex", help="Something that matches is printed."),
    Option("--command", kind=bool, help="A command of the shell ends."),
    Option("--prompt", kind=bool, help="The shell stands at its prompt."),
    Option("--input-wanted", kind=bool, help="The program waits for input."),
    Option("--exit", kind=bool, help="The session's program ends."),
    Option("--generation", kind=int, help="Only what is newer than this counts."),
    Option(
        "--max-wait-ms", kind=int, default=30_000, show_default=True, help="Overall deadline; passing it is status 4."
    ),
    json_option,
    session_argument,
)
def wait(
    session: str,
    quiet_ms: int | None,
    text: str | None,
    regex: str | None,
    generation: int | None,
    max_wait_ms: int,
    as_json: bool,
    **states: bool,
) -> None:
    """Wait for the first of the named conditions and say which it was."""
    until = {name: True for name, wanted in states.items() if wanted}
    if quiet_ms is None and not (text or regex or until):
        quiet_ms = 500
    query: dict[str, object] = {"timeout_ms": quiet_ms, "text": text, "regex": regex, "last_generation": generation}
    done = call(
        "GET", session_path(session, "/idle"), query=query | until | {"max_wait_ms": max_wait_ms, "format": "plain"}
    )
    if as_json:
        print_json(done)
    else:
        echo(done["ended_by"])
