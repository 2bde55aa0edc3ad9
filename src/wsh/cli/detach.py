from __future__ import annotations

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("detach")
@json_option
@click.argument("session")
def detach(as_json: bool, session: str) -> None:
    """Send every viewer of SESSION away; the session goes on."""
    ask(lambda server: server.session(session).detach())
    if as_json:
        print_json({"detached": session})
