from __future__ import annotations

import click

from wsh.cli.remote import ask


@click.command("resize")
@click.argument("session")
@click.argument("rows", type=int)
@click.argument("cols", type=int)
def resize(session: str, rows: int, cols: int) -> None:
    """Give SESSION a size of ROWS and COLS."""
    ask(lambda server: server.session(session).resize(rows, cols))
