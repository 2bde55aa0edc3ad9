from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("tag")
@click.option("--remove", "-r", multiple=True, help="Take this tag away; may be given again.")
@json_option
@click.argument("session")
@click.argument("tags", nargs=-1)
def tag(remove: tuple[str, ...], as_json: bool, session: str, tags: tuple[str, ...]) -> None:
    """Add TAGS to SESSION, and print the tags it has then."""
    info = ask(lambda server: server.session(session).tag(tags, remove))
    if as_json:
        print_json(dataclasses.asdict(info))
    else:
        click.echo(" ".join(info.tags))
