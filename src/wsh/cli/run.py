from __future__ import annotations

import sys
from _thread import allocate_lock, start_new_thread

from wsh.cli.declare import Argument, Failure, Option, command, echo, json_option, session_argument
from wsh.cli.output import NOT_KNOWN, plain_lines, print_json
from wsh.cli.request import call, session_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# A pipe wants all of it; the server's own default is for readers that pay for every word.
_MOST_BYTES = 64 * 1024 * 1024
# The server cuts this to the limit of its own.
_NO_DEADLINE_MS = 24 * 3600 * 1000
# A run that waits for a person or a program says so after this.
_SOON_MS = 1000
_SELDOM_S = 60.0


@command(
    "run",
    Option(
        "--timeout-ms",
        kind=int,
        default=2000,
        show_default=True,
        help="Silence that ends a command the shell says nothing about.",
    ),
    Option("--max-wait-ms", kind=int, help="Give up after so long; default: wait as long as the command takes."),
    Option(
        "--max-output-bytes",
        kind=int,
        default=_MOST_BYTES,
        help="Leave out the middle of longer output; default: the most, 64 MiB.",
    ),
    Option(
        "--clear-line", kind=bool, help="Clear what somebody has typed first; a person's text is put back afterwards."
    ),
    Option("--answer", kind=bool, help="Type it also where a program asks for something, as its answer."),
    Option("--sandbox", metavar="off", help="Ask a person to run it without the session's sandbox; with --reason."),
    Option("--reason", metavar="TEXT", help="With --sandbox: why; the person reads it."),
    json_option,
    session_argument,
    Argument("words", metavar="COMMAND", rest=True),
)
def run(
    timeout_ms: int,
    max_wait_ms: int | None,
    max_output_bytes: int,
    clear_line: bool,
    answer: bool,
    sandbox: str | None,
    reason: str | None,
    as_json: bool,
    session: str,
    words: tuple[str, ...],
) -> int:
    """Type COMMAND into SESSION, wait for its end, print its output; on a terminal, line by line as it comes.

    The exit status is the command's own where the shell tells it, and 7 where nobody tells, or where the command has not ended because
    it asks for something: a password, a yes, the rest of an unfinished command. An editor or a REPL that was started is a success, 0.
    It types only onto an empty line: where somebody has typed something without Enter, or where a command asks for something, nothing is
    typed, and the error says what stands there. While another program runs in SESSION and reads nothing, it waits for that, and says so.
    """
    text = " ".join(words)
    request = {
        "input": text,
        "timeout_ms": timeout_ms,
        "max_wait_ms": _NO_DEADLINE_MS if max_wait_ms is None else max_wait_ms,
        "max_output_bytes": max_output_bytes,
        "format": "plain",
        "clear_line": clear_line,
        "answer": answer,
    }
    if sandbox is not None or reason is not None:
        return _run_outside(session, request | {"sandbox": sandbox, "reason": reason}, max_wait_ms is None, as_json)
    stream = None
    stop_telling = _tell_if_waiting(session)
    if sys.stdout.isatty() and not as_json and "\n" not in text:
        from wsh.cli.following import LineFollower

        stream = LineFollower(session, text)
    # What the shell did not tell is told as null.
    done: dict[str, Any] = {"exit_code": None, "output": None, "duration_ms": None}
    try:
        done |= _run(session, request, "" if stream else "running", max_wait_ms is None)
    finally:
        stop_telling()
        if stream is not None:
            stream.stop()
    question = _find_question(session, text, done) if done["finished_by"] == "prompt" else ""
    if as_json:
        print_json(done)
    else:
        shown = done["output"] if done["output"] is not None else plain_lines(done["screen"]).rstrip("\n")
        if stream is not None and stream.printed:
            shown = "\n".join(shown.split("\n")[stream.printed :])
        echo(shown, end="" if not shown or shown.endswith("\n") else "\n")
        if done["exit_code"] is None and done["finished_by"] == "exit":
            echo(f"wsh: {session} ended, and nobody could tell with which status.", err=True)
        if done["exit_code"] is None and done["finished_by"] == "quiet":
            echo(
                f"wsh: {session} fell silent and told no end, so the status is not known: `wsh screen {session}` shows it, "
                f"`wsh wait --prompt {session}` waits on.",
                err=True,
            )
        if question:
            how = f"Answer with `wsh send {session}` or `wsh attach {session}`; `wsh wait --command {session}` waits for its end."
            if done.get("unfinished"):
                how = f"`wsh send {session}` types the rest, `wsh keys {session} ctrl+c` drops it."
            echo(f"wsh: {question} in {session}, so the command has not ended. {how}", err=True)
    if done["exit_code"] is None:
        # A program that waits for input was started well, unless it only asks something.
        return NOT_KNOWN if question or done["finished_by"] in ("quiet", "exit") else 0
    return int(done["exit_code"])


def _find_question(session: str, text: str, done: dict[str, Any]) -> str:
    """What the command asks for, if that is why the run ended; empty for a REPL, an editor, or a line that was typed into either."""
    if done.get("unfinished"):
        return "the shell asks for the rest of the command, such as a closing quote,"
    try:
        state = call("GET", session_path(session, "/state"), start=False, doing="")
        name = (state.get("foreground") or {}).get("name") or "the command"
        if state["state"] == "hidden":
            return f"`{name}` asks for something hidden, such as a password,"
        if state["state"] == "asks" and done.get("command_id") is not None:
            command = call("GET", session_path(session, f"/commands/{done['command_id']}"), start=False, doing="")
            if command["command"].strip() in text:
                return f"`{name}` waits for input"
    except Exception:  # the run itself was answered
        pass
    return ""


def _run_outside(session: str, request: dict[str, object], without_deadline: bool, as_json: bool) -> int:
    """Ask a person, wait, and print what came of it; it runs in a session of its own."""
    asked = {name: value for name, value in request.items() if value is not None}
    wait_ms: object = _SOON_MS
    told = False
    while True:
        body = asked | {"max_wait_ms": wait_ms}
        done: dict[str, Any] = call("POST", session_path(session, "/run"), json_body=body, doing="")
        if done["finished_by"] == "command":
            break
        outside = done["outside"]
        if not told and outside["approval"] == "pending":
            echo(
                f"Waits for a person: `wsh approvals show {outside['approval_id']}`, the page, or the window.", err=True
            )
        if told and not without_deadline:
            raise Failure(outside["note"])
        wait_ms, told = request["max_wait_ms"], True
    if as_json:
        print_json(done)
    else:
        echo(done["output"], end="" if not done["output"] or done["output"].endswith("\n") else "\n")
    return done["exit_code"] or 0


def _run(session: str, request: dict[str, object], doing: str, without_deadline: bool) -> Any:
    while True:
        try:
            return call("POST", session_path(session, "/run"), json_body=request, doing=doing)
        except Exception as problem:
            from wsh.wire.error import InvalidRequest, WaitTimeout

            if isinstance(problem, InvalidRequest) and "answer: this field is not known" in problem.message:
                request = {name: value for name, value in request.items() if name != "answer"}
                continue  # a server of an earlier version
            # One request has a limit of its own (server.max_wait_ms).
            if not isinstance(problem, WaitTimeout) or not without_deadline:
                raise
            if problem.facts.get("busy"):
                continue  # nothing was typed
            if "command_id" not in problem.facts:
                raise  # nothing can be waited for
            from wsh.cli.following import wait_on

            return wait_on(session, problem)


def _tell_if_waiting(session: str) -> Callable[[], None]:
    """Says on stderr, after a second, what the run waits for before it types anything; the result ends that."""
    over = allocate_lock()
    over.acquire()

    def look() -> None:
        # Between two requests of one run nothing waits: look again, and ever more seldom.
        pause_s = _SOON_MS / 1000
        while not over.acquire(timeout=pause_s):
            pause_s = min(2 * pause_s, _SELDOM_S)
            try:
                state = call("GET", session_path(session, "/state"), start=False, doing="")
            except Exception:  # the request itself tells
                return
            if state.get("run_waits"):
                _tell_wait(session, state)
                return

    start_new_thread(look, ())
    return over.release


def _tell_wait(session: str, state: dict[str, Any]) -> None:
    front = state.get("foreground") or {}
    what = f"`{' '.join(front.get('argv') or [])[:200]}` runs and reads nothing: its end"
    what = "somebody types: the line" if state["at_prompt"] == "yes" else what
    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
    echo(f"{clear}wsh: in {session} {what} is waited for, then the command is typed.", err=True)
