from __future__ import annotations

import dataclasses
import sys

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask

# A pipe wants all of it; the server's own default is for readers that pay for every word.
_MOST_BYTES = 64 * 1024 * 1024


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.option(
    "--timeout-ms", default=2000, show_default=True, help="Silence that ends a command the shell says nothing about."
)
@click.option("--max-wait-ms", default=30_000, show_default=True, help="Overall deadline.")
@click.option(
    "--max-output-bytes", default=_MOST_BYTES, help="Leave out the middle of longer output; default: the most, 64 MiB."
)
@json_option
@click.argument("session")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    timeout_ms: int,
    max_wait_ms: int,
    max_output_bytes: int,
    as_json: bool,
    session: str,
    command: tuple[str, ...],
) -> None:
    """Type COMMAND into SESSION, wait for its end, print its output.

    The exit status is the command's own where the shell tells it.
    """
    done = ask(
        lambda server: server.session(session).run(
            " ".join(command), timeout_ms=timeout_ms, max_wait_ms=max_wait_ms, max_output_bytes=max_output_bytes
        ),
        doing="running",
    )
    if as_json:
        print_json(dataclasses.asdict(done))
    else:
        text = done.output if done.output is not None else done.screen.text
        click.echo(text, nl=bool(text) and not text.endswith("\n"))
    sys.exit(done.exit_code or 0)
