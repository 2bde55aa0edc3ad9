from __future__ import annotations

import click

from wsh.cli.remote import ask
from wsh.client.client import Server


@click.command("kill")
@click.argument("sessions", nargs=-1, required=True)
def kill(sessions: tuple[str, ...]) -> None:
    """End SESSIONS with all their processes."""

    async def work(server: Server) -> None:
        for name in sessions:
            await server.session(name).kill()

    ask(work, doing="ending")
