from __future__ import annotations

import sys
from pathlib import Path

import click

from wsh.cli.attach import show
from wsh.cli.export import fetch, save
from wsh.cli.output import json_option, print_json
from wsh.cli.start import open_here


@click.command("record", context_settings={"ignore_unknown_options": True})
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="The asciicast file to write.")
@click.option("--v3", is_flag=True, help="Write version 3 of the format instead of 2.")
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record(output: Path, v3: bool, as_json: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND, or a shell, in this terminal and write what it prints to a file.

    Every session is recorded anyway: `wsh export` gives the recording of any of them.
    """
    if not output.parent.is_dir():
        raise click.BadParameter(f"{output.parent} is not a folder", param_hint="--output")
    name = open_here(command, status=False)
    status = show(name, status=False)
    format = "asciicast-v3" if v3 else "asciicast-v2"
    data = fetch(name, format, None, "dark")
    save(output, data)
    if as_json:
        facts = {"session": name, "format": format, "bytes": len(data), "file": str(output), "exit_code": status}
        print_json(facts)
    else:
        click.echo(f"written to {output}", err=True)
    sys.exit(status)
