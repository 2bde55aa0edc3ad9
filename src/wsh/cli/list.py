from __future__ import annotations

import dataclasses

import click

from wsh.cli.output import json_option, print_json, print_table
from wsh.cli.remote import ask


@click.command("list")
@click.option("--tag", "tags", multiple=True, help="Only sessions with this tag; may be given again.")
@json_option
def list_(tags: tuple[str, ...], as_json: bool) -> None:
    """List sessions, the oldest first."""
    found = ask(lambda server: server.list(tags))
    if as_json:
        print_json([dataclasses.asdict(info) for info in found])
        return
    rows = [
        (
            info.name,
            "running" if info.running else f"exited {info.exit_code}",
            info.pid,
            f"{info.rows}x{info.cols}",
            info.command,
            " ".join(info.tags),
        )
        for info in found
    ]
    print_table(("name", "state", "pid", "size", "command", "tags"), rows, empty="No sessions. Begin with: wsh new")
