from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("resize")
@json_option
@click.argument("session")
@click.argument("rows", type=int)
@click.argument("cols", type=int)
def resize(as_json: bool, session: str, rows: int, cols: int) -> None:
    """Give SESSION a size of ROWS and COLS."""
    info = ask(lambda server: server.session(session).resize(rows, cols))
    if as_json:
        print_json(dataclasses.asdict(info))
