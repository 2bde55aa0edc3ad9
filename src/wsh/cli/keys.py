from __future__ import annotations

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("keys")
@json_option
@click.argument("session")
@click.argument("key", nargs=-1, required=True)
def keys(as_json: bool, session: str, key: tuple[str, ...]) -> None:
    """Press keys in SESSION by name, such as: ctrl+c, enter, shift+tab, alt+left, f5."""
    ask(lambda server: server.session(session).keys(*key))
    if as_json:
        print_json({"session": session, "keys": list(key)})
