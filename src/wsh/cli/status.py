from __future__ import annotations

import json
import sys
from typing import Any

import click

from wsh.cli.output import NO_SERVER, json_option, print_json
from wsh.cli.remote import ask
from wsh.client.client import Server
from wsh.wire.error import ServerGone
from wsh.wire.place import find_places


@click.command("status")
@json_option
def status(as_json: bool) -> None:
    """Say whether a server runs, where it listens and what it holds. Status 6 when none runs."""
    places = find_places()
    try:
        known: dict[str, Any] = json.loads(places.runtime_info.read_bytes())
    except (OSError, ValueError):
        known = {}

    async def work(server: Server) -> dict[str, Any]:
        info = await server.info()
        sessions = await server.list()
        return {
            "running": True,
            "url": known.get("url"),
            "pid": known.get("pid"),
            "socket": str(places.socket),
            "server": places.server,
            "version": info["version"],
            "sessions": len(sessions),
            "live_sessions": sum(1 for session in sessions if session.running),
            "ephemeral": known.get("ephemeral", False),
            "warnings": info.get("warnings", []),
        }

    try:
        found = ask(work, start=False)
    except ServerGone:
        if as_json:
            print_json({"running": False, "url": None, "pid": None, "socket": str(places.socket), "sessions": 0})
        else:
            click.echo("No server runs. Start one with: wsh server")
        sys.exit(NO_SERVER)
    if as_json:
        print_json(found)
        return
    click.echo(
        f"{found['url']}  (wsh {found['version']}, pid {found['pid']}{', ephemeral' if found['ephemeral'] else ''})"
    )
    click.echo(f"{found['live_sessions']} of {found['sessions']} sessions run; unix socket {found['socket']}")
    for warning in found["warnings"]:
        click.echo(f"warning: {warning}", err=True)
