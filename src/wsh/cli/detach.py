from __future__ import annotations

import click

from wsh.cli.remote import ask


@click.command("detach")
@click.argument("session")
def detach(session: str) -> None:
    """Send every viewer of SESSION away; the session goes on."""
    ask(lambda server: server.session(session).detach())
