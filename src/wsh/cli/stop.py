from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask
from wsh.client.client import Server
from wsh.wire.error import ServerGone

_END_S = 30.0


@click.command("stop")
@click.option("--keep", is_flag=True, help="Leave the sessions running for the next server.")
@json_option
def stop(keep: bool, as_json: bool) -> None:
    """Stop the server and end its sessions; returns when it is gone."""

    async def work(server: Server) -> tuple[int, bool]:
        answer = await server.call("POST", "/server/stop", query={"keep": keep or None})
        pid = int(answer["pid"])
        return pid, await _is_gone(pid)

    try:
        pid, gone = ask(work, start=False, doing="stopping")
    except ServerGone:
        if as_json:
            print_json({"stopped": False, "pid": None, "kept": False})
        else:
            click.echo("No server runs.")
        return
    if not gone:
        raise click.ClickException(f"Process {pid} was told to end and does not; look into its log.")
    if as_json:
        print_json({"stopped": True, "pid": pid, "kept": keep})


async def _is_gone(pid: int) -> bool:
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if _is_unreaped(pid):
            return True
        await asyncio.sleep(0.02)
    return False


def _is_unreaped(pid: int) -> bool:
    """It has ended, and whoever started it has not asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
