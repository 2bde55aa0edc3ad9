from __future__ import annotations

import sys

import click

from wsh.cli.output import json_option, print_json
from wsh.client import tty
from wsh.wire.error import InvalidRequest


def show(name: str, *, read_only: bool = False, status: bool = True, scrollback: int = 0, as_json: bool = False) -> int:
    """Show a session in this terminal until detached; returns the exit status for this process."""
    if not tty.is_terminal():
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
    click.echo(f"[{end.reason} · {name}]" if end.reason == "detached" else f"[{name}: {end.reason}]", err=True)
    return 0


@click.command("attach")
@click.option("--read-only", "-r", is_flag=True, help="Look, but do not type.")
@click.option("--scrollback", default=0, metavar="LINES", help="Print so many earlier lines first.")
@click.option("--no-status", is_flag=True, help="No status line.")
@json_option
@click.argument("name")
def attach(read_only: bool, scrollback: int, no_status: bool, as_json: bool, name: str) -> None:
    """Show session NAME in this terminal and type into it.

    Ctrl+\\ takes captured keys back; pressed twice it detaches. With --json the last line says how it ended.
    """
    sys.exit(show(name, read_only=read_only, status=not no_status, scrollback=scrollback, as_json=as_json))
