from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("rename")
@json_option
@click.argument("session")
@click.argument("new_name")
def rename(as_json: bool, session: str, new_name: str) -> None:
    """Call SESSION by NEW_NAME from now on."""
    info = ask(lambda server: server.session(session).rename(new_name))
    if as_json:
        print_json(dataclasses.asdict(info))
