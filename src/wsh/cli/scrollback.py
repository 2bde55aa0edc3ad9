from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("scrollback")
@click.option("--limit", default=100, show_default=True, help="How many lines.")
@click.option("--offset", default=0, show_default=True, help="Lines to leave out at the end.")
@click.option("--since-line", type=int, help="Only lines from this absolute number on.")
@click.option("--styled", is_flag=True, help="With --json: spans with colours and attributes.")
@json_option
@click.argument("session")
def scrollback(limit: int, offset: int, since_line: int | None, styled: bool, as_json: bool, session: str) -> None:
    """Show the last lines of SESSION, the visible screen included."""
    page = ask(
        lambda server: server.session(session).scrollback(
            offset=offset, limit=limit, since_line=since_line, format="styled" if styled else "plain"
        )
    )
    if as_json:
        print_json(dataclasses.asdict(page))
    else:
        click.echo(page.text)
