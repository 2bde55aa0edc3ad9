from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from wsh.cli.output import json_option, print_json


@click.command("completion")
@json_option
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(as_json: bool, shell: str) -> None:
    """Print the completion script for SHELL, to be sourced by it."""
    from wsh.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    script = found(cli, {}, "wsh", "_WSH_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
