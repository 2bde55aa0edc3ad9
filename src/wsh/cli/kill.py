from __future__ import annotations

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask
from wsh.client.client import Server


@click.command("kill")
@json_option
@click.argument("sessions", nargs=-1, required=True)
def kill(as_json: bool, sessions: tuple[str, ...]) -> None:
    """End SESSIONS with all their processes."""

    async def work(server: Server) -> None:
        for name in sessions:
            await server.session(name).kill()

    ask(work, doing="ending")
    if as_json:
        print_json({"killed": list(sessions)})
