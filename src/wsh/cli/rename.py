from __future__ import annotations

import click

from wsh.cli.remote import ask


@click.command("rename")
@click.argument("session")
@click.argument("new_name")
def rename(session: str, new_name: str) -> None:
    """Call SESSION by NEW_NAME from now on."""
    ask(lambda server: server.session(session).rename(new_name))
