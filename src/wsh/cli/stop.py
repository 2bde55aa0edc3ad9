from __future__ import annotations

import asyncio
import os
import time

import click

from wsh.cli.remote import ask
from wsh.client.client import Server
from wsh.wire.error import ServerGone

_END_S = 30.0


@click.command("stop")
@click.option("--keep", is_flag=True, help="Leave the sessions running for the next server.")
def stop(keep: bool) -> None:
    """Stop the server and end its sessions; returns when it is gone."""

    async def work(server: Server) -> None:
        answer = await server.call("POST", "/server/stop", query={"keep": keep or None})
        await _until_gone(int(answer["pid"]))

    try:
        ask(work, start=False, doing="stopping")
    except ServerGone:
        click.echo("No server runs.")


async def _until_gone(pid: int) -> None:
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.02)
    raise ServerGone(f"process {pid} does not end; look into its log")
