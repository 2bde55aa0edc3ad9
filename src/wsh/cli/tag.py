from __future__ import annotations

import click

from wsh.cli.remote import ask


@click.command("tag")
@click.option("--remove", "-r", multiple=True, help="Take this tag away; may be given again.")
@click.argument("session")
@click.argument("tags", nargs=-1)
def tag(remove: tuple[str, ...], session: str, tags: tuple[str, ...]) -> None:
    """Add TAGS to SESSION, and print the tags it has then."""
    info = ask(lambda server: server.session(session).tag(tags, remove))
    click.echo(" ".join(info.tags))
