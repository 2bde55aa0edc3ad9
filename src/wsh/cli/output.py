"""How commands speak: JSON for programs, tables for people, plain lines in pipes, one line per error.

Exit statuses: 0 done, 1 failed, 2 wrong use, 3 no such thing, 4 a deadline passed, 5 refused, 6 no server, 7 not known.
"""

from __future__ import annotations

import os
import sys

from wsh.cli.declare import Failure, WrongUse, echo
from wsh.wire.json.text import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wsh.wire.error import WshError

FAILED, WRONG_USE, NOT_THERE, TOO_LATE, REFUSED, NO_SERVER, NOT_KNOWN = 1, 2, 3, 4, 5, 6, 7


def exit_status(error: WshError) -> int:
    from wsh.wire.error import Refused, ServerGone, ServerSilent, SessionTaken, WaitTimeout

    if isinstance(error, ServerGone | ServerSilent):
        return NO_SERVER
    if isinstance(error, WaitTimeout):
        return TOO_LATE
    if isinstance(error, Refused | SessionTaken):
        return REFUSED
    if error.code.endswith("not_found"):
        return NOT_THERE
    return WRONG_USE if error.blame == "caller" else FAILED


def report(problem: Exception) -> int:
    """Prints one line about any failure that is not ours, in JSON where that was asked for; returns the exit status.

    Raises what is not known: that is a fault of the program, and its trace is wanted.
    """
    if isinstance(problem, WrongUse):
        return _report_wrong_use(problem)
    if isinstance(problem, Failure):
        return _say("failed", str(problem), FAILED)
    from wsh.wire.error import InvalidRequest, WshError

    if isinstance(problem, WshError):
        return report_error(problem)
    from wsh.wire.setting import SettingError
    from wsh.wire.system.place import FolderUnusable

    if isinstance(problem, SettingError | FolderUnusable):
        return report_error(InvalidRequest(str(problem)))
    if isinstance(problem, OSError):
        # A full disk, a file where a folder should be, a missing right: the user's to mend, and a trace would not say how.
        named = problem.filename and problem.strerror
        return _say("failed", f"{problem.filename}: {problem.strerror}" if named else str(problem), FAILED)
    raise problem


def report_error(error: WshError) -> int:
    if "--json" in sys.argv:
        echo(write_json({"error": error.to_wire()}), err=True)
    else:
        code = error.to_wire().get("details", {}).get("tool_code")  # of the tools that have codes of their own
        echo(f"wsh: {_spell(error.message)}{f' ({code})' if code else ''}", err=True)
        hint = _hint(error)
        if hint:
            echo(f"     {hint}", err=True)
    return exit_status(error)


_SPELLED = (
    ("The request is not valid: ", ""),
    (": Input should be greater than or equal to", " must be at least"),
    (": Input should be less than or equal to", " must be at most"),
)


def _spell(message: str) -> str:
    """What the server says of a wrong field, in words of the command line, whose options have the fields' names."""
    if not message.startswith(_SPELLED[0][0]):
        return message
    for theirs, ours in _SPELLED:
        message = message.replace(theirs, ours)
    return message.replace("_", "-")


_HINTS = {
    "session_not_found": "`wsh list` shows the sessions; `wsh new --name NAME` makes one.",
}
"""What to do next, in words of the command line where the server's hint has those of other doors."""


def _hint(error: WshError) -> str | None:
    facts = error.to_wire().get("details", {})
    if error.code == "line_in_use" and "asks" in facts:
        name = facts.get("session")
        return (
            f"`wsh send {name} --enter TEXT` answers it, `wsh keys {name} ctrl+c` ends it, `wsh wait --prompt {name}` waits for its end; "
            "`wsh run --answer` types the line there all the same."
        )
    if error.code == "line_in_use":
        if sys.argv[1:2] == ["run"]:
            return "Wait until it is completed, use another session, or give --clear-line; a person's text is put back afterwards."
        return f"Wait until it is completed, or use another session; `wsh keys {facts.get('session')} ctrl+c` drops it."
    if error.hint is not None and "/openapi.json" in error.hint:
        return f"`wsh {sys.argv[1]} --help` says what it takes."
    if error.code == "session_not_found":
        return (_near_session(str(facts.get("session", ""))) + " " + _HINTS[error.code]).strip()
    if error.code == "idle_timeout" and "command_id" in facts:
        name = facts.get("session")
        if facts.get("busy"):
            return f"`wsh wait --prompt {name}` waits for its end, then run it again; `wsh keys {name} ctrl+c` ends it; or use another session."
        return f"`wsh wait --command {name}` waits on, `wsh attach {name}` shows it, `wsh keys {name} ctrl+c` ends it."
    if facts.get("tool_code") == "NO_INDEX":
        return f"`wsh index build {facts.get('workspace', '')}` makes one; then search again."
    return _HINTS.get(error.code) or error.hint


def _near_session(name: str) -> str:
    from wsh.cli.declare import near
    from wsh.cli.request import call

    try:
        known = [str(session["name"]) for session in call("GET", "/sessions", start=False, doing="")]
    except Exception:  # a suggestion that cannot be had is none, whatever the reason
        return ""
    return near(name, known).strip()


def _report_wrong_use(problem: WrongUse) -> int:
    if "--json" not in sys.argv and problem.command is not None:
        echo(f"{problem.command.usage}\nTry '{problem.command.path} --help' for help.\n", err=True)
    return _say("invalid_request", str(problem), WRONG_USE)


def _say(code: str, message: str, status: int) -> int:
    as_json = "--json" in sys.argv
    echo(write_json({"error": {"code": code, "message": message}}) if as_json else f"wsh: {message}", err=True)
    return status


def print_json(value: object) -> None:
    if not sys.stdout.isatty():
        echo(write_json(value, ascii_only=False))
        return
    from json import dumps

    echo(dumps(value, ensure_ascii=False, indent=2))


def style(text: str, code: str, *, err: bool = False) -> str:
    """`text` in a style (an SGR parameter such as "1" or "31") where the reader is a terminal that takes colours."""
    stream = sys.stderr if err else sys.stdout
    plain = not stream.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "") -> None:
    """A table on a terminal, folded to its width; tab-separated lines without a heading in a pipe.

    The column `id` stays in one piece, to be copied, if it takes at most half of the width.
    """
    if not sys.stdout.isatty():
        for row in rows:
            echo("\t".join(clean(cell) for cell in row))
        return
    if not rows:
        if empty:
            echo(empty)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    console = Console()
    for index, column in enumerate(columns):
        whole = column == "id" and max(len(str(row[index])) for row in rows) <= console.width // 2
        table.add_column(column, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    console.print(table)


def plain_lines(found: Mapping[str, list[object]]) -> str:
    """The lines of a screen or scrollback as one text; styled lines lose their styles."""
    return "\n".join(line if isinstance(line, str) else _unstyled(line) for line in found["lines"])


def _unstyled(line: object) -> str:
    return (
        "".join(str(span.get("text", "")) for span in line if isinstance(span, dict)) if isinstance(line, list) else ""
    )


def clean(cell: object) -> str:
    """Names and titles come from programs: control characters in them stay out of this terminal."""
    return "".join(c if c.isprintable() else "�" for c in str(cell))
