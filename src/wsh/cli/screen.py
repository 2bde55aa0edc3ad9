from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("screen")
@click.option("--styled", is_flag=True, help="With --json: spans with colours and attributes.")
@json_option
@click.argument("session")
def screen(styled: bool, as_json: bool, session: str) -> None:
    """Show the screen of SESSION."""
    seen = ask(lambda server: server.session(session).screen("styled" if styled else "plain"))
    if as_json:
        print_json(dataclasses.asdict(seen))
    else:
        click.echo(seen.text)
