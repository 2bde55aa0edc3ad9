from __future__ import annotations

from wsh.cli.declare import Argument, Option, command, echo, json_option, session_argument
from wsh.cli.output import plain_lines, print_json
from wsh.cli.request import call, session_path

# A pipe wants all of it; the server's own default is for readers that pay for every word.
_MOST_BYTES = 64 * 1024 * 1024


@command(
    "run",
    Option(
        "--timeout-ms",
        kind=int,
        default=2000,
        show_default=True,
        help="Silence that ends a command the shell says nothing about.",
    ),
    Option("--max-wait-ms", kind=int, default=30_000, show_default=True, help="Overall deadline."),
    Option(
        "--max-output-bytes",
        kind=int,
        default=_MOST_BYTES,
        help="Leave out the middle of longer output; default: the most, 64 MiB.",
    ),
    Option(
        "--clear-line", kind=bool, help="Clear what somebody has typed first; a person's text is put back afterwards."
    ),
    json_option,
    session_argument,
    Argument("words", metavar="COMMAND", rest=True),
)
def run(
    timeout_ms: int,
    max_wait_ms: int,
    max_output_bytes: int,
    clear_line: bool,
    as_json: bool,
    session: str,
    words: tuple[str, ...],
) -> int:
    """Type COMMAND into SESSION, wait for its end, print its output.

    The exit status is the command's own where the shell tells it. It types only onto an empty line: where somebody has
    typed something without Enter, nothing is typed, and the error says what stands there.
    """
    request = {
        "input": " ".join(words),
        "timeout_ms": timeout_ms,
        "max_wait_ms": max_wait_ms,
        "max_output_bytes": max_output_bytes,
        "format": "plain",
        "clear_line": clear_line,
    }
    # What the shell did not tell is told as null.
    done = {"exit_code": None, "output": None, "duration_ms": None} | call(
        "POST", session_path(session, "/run"), json_body=request, doing="running"
    )
    if as_json:
        print_json(done)
    else:
        text = done["output"] if done["output"] is not None else plain_lines(done["screen"]).rstrip("\n")
        echo(text, end="" if not text or text.endswith("\n") else "\n")
    return done["exit_code"] or 0
