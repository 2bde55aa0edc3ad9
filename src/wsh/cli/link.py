from __future__ import annotations

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask
from wsh.client.client import Server


@click.command("link")
@json_option
def link(as_json: bool) -> None:
    """Print a link that opens the page and signs this browser in. It works once, for ten minutes."""

    async def work(server: Server) -> str:
        return str((await server.call("POST", "/auth/link"))["url"])

    url = ask(work)
    if as_json:
        print_json({"url": url})
    else:
        click.echo(url)
