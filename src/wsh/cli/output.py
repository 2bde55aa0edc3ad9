"""How commands speak: JSON for programs, tables for people, plain lines in pipes, one line per error.

Exit statuses: 0 done, 1 failed, 2 wrong use, 3 no such thing, 4 a deadline passed, 5 refused, 6 no server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from wsh.wire.error import Refused, ServerGone, SessionTaken, WaitTimeout, WshError

FAILED, WRONG_USE, NOT_THERE, TOO_LATE, REFUSED, NO_SERVER = 1, 2, 3, 4, 5, 6

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def exit_status(error: WshError) -> int:
    if isinstance(error, ServerGone):
        return NO_SERVER
    if isinstance(error, WaitTimeout):
        return TOO_LATE
    if isinstance(error, Refused | SessionTaken):
        return REFUSED
    if error.code.endswith("not_found"):
        return NOT_THERE
    return WRONG_USE if error.blame == "caller" else FAILED


def report_error(error: WshError) -> int:
    """Print the error for whoever is there; returns the exit status."""
    if "--json" in sys.argv:
        click.echo(json.dumps({"error": error.to_wire()}), err=True)
    else:
        code = error.to_wire().get("details", {}).get("tool_code")  # of the tools that have codes of their own
        click.echo(f"wsh: {error.message}{f' ({code})' if code else ''}", err=True)
        if error.hint:
            click.echo(f"     {error.hint}", err=True)
    return exit_status(error)


def report_system_error(error: OSError) -> int:
    """Print what the system refused; returns the exit status."""
    message = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if "--json" in sys.argv:
        click.echo(json.dumps({"error": {"code": "failed", "message": message}}), err=True)
    else:
        click.echo(f"wsh: {message}", err=True)
    return FAILED


def run_for_program(cli: click.Command) -> int:
    """Run the command line for a caller that reads JSON: wrong use is told in the shape of every other error."""
    try:
        done = cli(prog_name="wsh", standalone_mode=False)
        return done if isinstance(done, int) else 0
    except click.ClickException as problem:
        known: dict[str, Any] = {"code": "invalid_request" if problem.exit_code == WRONG_USE else "failed"}
        click.echo(json.dumps({"error": known | {"message": problem.format_message()}}), err=True)
        return problem.exit_code
    except click.Abort:
        click.echo(json.dumps({"error": {"code": "aborted", "message": "Nothing was done."}}), err=True)
        return FAILED


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "") -> None:
    """A table on a terminal; tab-separated lines without a heading in a pipe."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(_clean(cell) for cell in row))
        return
    if not rows:
        if empty:
            click.echo(empty)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_clean(cell)) for cell in row))
    Console().print(table)


def _clean(cell: object) -> str:
    """Names and titles come from programs: control characters in them stay out of this terminal."""
    return "".join(c if c.isprintable() else "�" for c in str(cell))
