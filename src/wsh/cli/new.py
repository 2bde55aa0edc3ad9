from __future__ import annotations

import dataclasses
import os
import shlex

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask
from wsh.client.client import Server
from wsh.client.model import SessionInfo


@click.command("new", context_settings={"ignore_unknown_options": True})
@click.option("--name", help="Name of the session; one is made up if left out.")
@click.option("--rows", type=int, help="Rows; default from the settings.")
@click.option("--cols", type=int, help="Columns; default from the settings.")
@click.option("--cwd", help="Working directory; default: this one.")
@click.option("--env", "-e", multiple=True, metavar="KEY=VALUE", help="Environment variable; may be given again.")
@click.option("--tag", "tags", multiple=True, help="Tag; may be given again.")
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def new(
    name: str | None,
    rows: int | None,
    cols: int | None,
    cwd: str | None,
    env: tuple[str, ...],
    tags: tuple[str, ...],
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Create a session that runs COMMAND, or a shell, and print its name.

    One argument is a command line as you would type it; several are a program and its arguments.
    """
    variables = dict(_split(pair) for pair in env)
    where = os.path.abspath(cwd or os.getcwd())
    line = command[0] if len(command) == 1 else shlex.join(command) if command else None

    async def work(server: Server) -> SessionInfo:
        session = await server.open(line, name=name, rows=rows, cols=cols, cwd=where, env=variables, tags=tags)
        return await session.info()

    info = ask(work, doing="starting")
    if as_json:
        print_json(dataclasses.asdict(info))
    else:
        click.echo(info.name)


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals:
        raise click.BadParameter(f"{pair!r} is not KEY=VALUE")
    return key, value
