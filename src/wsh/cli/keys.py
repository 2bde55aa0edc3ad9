from __future__ import annotations

import click

from wsh.cli.remote import ask


@click.command("keys")
@click.argument("session")
@click.argument("key", nargs=-1, required=True)
def keys(session: str, key: tuple[str, ...]) -> None:
    """Press keys in SESSION by name, such as: ctrl+c, enter, shift+tab, alt+left, f5."""
    ask(lambda server: server.session(session).keys(*key))
