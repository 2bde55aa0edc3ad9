"""`wsh mcp`: MCP on stdin and stdout. `wsh mcp install`: the entry in a client's configuration.

Imports nothing of the SDK: a host that starts this waits for its first answer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from wsh.cli.output import json_option, print_json
from wsh.wire.tool import FAMILIES


def _split_toolsets(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (value or "").split(",") if part.strip())
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: choose from {', '.join(FAMILIES)}")
    return names


_toolsets = click.option(
    "--toolsets",
    callback=_split_toolsets,
    metavar="LIST",
    help=f"Offer only these families of tools, separated by commas: {', '.join(FAMILIES)}.",
)


@click.group(invoke_without_command=True)
@_toolsets
@click.pass_context
def mcp(ctx: click.Context, toolsets: tuple[str, ...]) -> None:
    """Speak MCP on stdin and stdout, for hosts that start their servers as processes.

    Starts an ephemeral server when none runs. The working directory and the variables ALLOWED_*, PM_* and WSH_* of this
    process govern the connection.
    """
    if ctx.invoked_subcommand is None:
        from wsh.client.pump import run_pump
        from wsh.wire.place import find_places

        sys.exit(run_pump(find_places(), toolsets))


@mcp.command()
@click.option("--client", "name", required=True, help="claude-code, claude-desktop, vscode, cursor or codex.")
@click.option("--scope", type=click.Choice(["user", "project"]), help="Whose configuration; the client's usual one.")
@click.option("--write", is_flag=True, help="Write it. Without this, only show what would be written.")
@_toolsets
@json_option
def install(name: str, scope: str | None, write: bool, toolsets: Sequence[str], as_json: bool) -> None:
    """Show the configuration that lets an MCP client use wsh, and write it with --write."""
    from wsh.client.install import InstallError, find_client, plan

    try:
        change = plan(find_client(name), scope, toolsets)
    except InstallError as problem:
        raise click.ClickException(str(problem)) from None
    if not as_json:
        click.echo(f"{change.path}:")
        click.echo(change.shown.rstrip("\n"))
    writes = write and not change.unchanged
    if writes:
        try:
            change.write()
        except OSError as problem:
            raise click.ClickException(f"{change.path} cannot be written: {problem.strerror}") from None
    if as_json:
        facts = {"client": name, "file": str(change.path), "entry": change.shown, "unchanged": change.unchanged}
        print_json(facts | {"written": writes})
    elif change.unchanged:
        click.echo("This is there already; nothing to do.", err=True)
    elif writes:
        click.echo(f"Written. {change.client.afterwards}", err=True)
    else:
        click.echo("Nothing was written; add --write to do it.", err=True)
