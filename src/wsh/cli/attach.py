from __future__ import annotations

from wsh.cli.declare import Option, command, echo, json_option, session_argument
from wsh.cli.output import print_json


def show(name: str, *, read_only: bool = False, status: bool = True, scrollback: int = 0, as_json: bool = False) -> int:
    """Show a session in this terminal until detached; returns the exit status for this process."""
    from wsh.client import tty

    if not tty.is_terminal():
        from wsh.wire.error import InvalidRequest

        raise InvalidRequest(
            "Attaching needs a terminal on both sides.",
            hint="Read the screen with: wsh screen NAME, type with: wsh send NAME",
        )
    from wsh.client.view import ViewOptions, view

    with tty.raw_mode() as held:
        held.status = status
        end = view(name, ViewOptions(read_only, status, scrollback))
        held.used_rows = end.row
    if as_json:
        print_json({"session": name, "reason": end.reason, "exit_code": end.exit_code})
        return end.exit_code or 0
    if end.exit_code is not None:
        return end.exit_code
    echo(f"[{end.reason} · {name}]" if end.reason == "detached" else f"[{name}: {end.reason}]", err=True)
    return 0


@command(
    "attach",
    Option("--read-only", "-r", kind=bool, help="Look, but do not type."),
    Option("--scrollback", kind=int, default=0, metavar="LINES", help="Print so many earlier lines first."),
    Option("--no-status", kind=bool, help="No status line."),
    json_option,
    session_argument,
)
def attach(read_only: bool, scrollback: int, no_status: bool, as_json: bool, session: str) -> int:
    """Show SESSION in this terminal and type into it.

    Ctrl+\\ takes captured keys back; pressed twice it detaches. With --json the last line says how it ended.
    """
    return show(session, read_only=read_only, status=not no_status, scrollback=scrollback, as_json=as_json)
