from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json
from wsh.cli.remote import ask


@click.command("wait")
@click.option("--quiet-ms", type=int, help="Silent for so long; default 500 if no other condition is named.")
@click.option("--text", help="This text is printed.")
@click.option("--regex", help="Something that matches is printed.")
@click.option("--command", is_flag=True, help="A command of the shell ends.")
@click.option("--prompt", is_flag=True, help="The shell stands at its prompt.")
@click.option("--input-wanted", is_flag=True, help="The program waits for input.")
@click.option("--exit", "exit_", is_flag=True, help="The session's program ends.")
@click.option("--generation", type=int, help="Only what is newer than this counts.")
@click.option("--max-wait-ms", default=30_000, show_default=True, help="Overall deadline; passing it is status 4.")
@json_option
@click.argument("session")
def wait(
    quiet_ms: int | None,
    text: str | None,
    regex: str | None,
    command: bool,
    prompt: bool,
    input_wanted: bool,
    exit_: bool,
    generation: int | None,
    max_wait_ms: int,
    as_json: bool,
    session: str,
) -> None:
    """Wait for the first of the named conditions and say which it was."""
    if quiet_ms is None and not (text or regex or command or prompt or input_wanted or exit_):
        quiet_ms = 500
    done = ask(
        lambda server: server.session(session).wait(
            quiet_ms=quiet_ms,
            text=text,
            regex=regex,
            command=command,
            prompt=prompt,
            input_wanted=input_wanted,
            exit=exit_,
            generation=generation,
            max_wait_ms=max_wait_ms,
        )
    )
    if as_json:
        print_json(dataclasses.asdict(done))
    else:
        click.echo(done.ended_by)
